"""Every recipe: files as the tool lays them out, and the commands as they are printed."""

import csv
import json
import re
import shlex
import shutil
import warnings
from pathlib import Path

import nibabel
import numpy as np
import pytest

from lesioncount.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "recipes.md").read_text("utf-8")
RECIPES = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
AFFINE = np.diag([1.0, 1.0, 3.0, 1.0])


def lesions(rng, *, n=3, shape=(24, 20, 16)):
    """A map with some lesions that lie apart, on a background of less than a percent."""
    p = (rng.random(shape) * 0.005).astype(np.float32)
    for i in range(n):
        p[3 + 7 * i : 6 + 7 * i, 5:9, 6:9] = 0.9 - 0.22 * i
    return p


def save(path, values, affine=AFFINE):
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(values, affine), path)


def nnunet(_rng):
    """Real predictions, with the files that nnU-Net leaves besides."""
    shutil.copytree(ROOT / "tests" / "fixtures" / "nnunet" / "normal", "predictions")
    Path("predictions/predict_from_raw_data_args.json").write_text("{}")
    for name in ("test_001", "test_002"):
        Path(f"predictions/{name}.pkl").write_bytes(b"never opened")


def monai_bundle(rng):
    """Written by MONAI's own transform."""
    torch = pytest.importorskip("torch", reason="needs the extra [train]")
    transforms = pytest.importorskip("monai.transforms", reason="needs the extra [train]")
    from monai.data import MetaTensor

    write = transforms.SaveImaged("pred", output_dir="eval", resample=False, print_log=False)
    for name in ("lung_001", "lung_002"):
        lesion = torch.as_tensor(lesions(rng))
        pred = MetaTensor(torch.stack([1 - lesion, lesion]), affine=AFFINE, meta={"filename_or_obj": f"{name}.nii.gz"})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of MONAI itself
            write({"pred": pred})


def total_segmentator(rng):
    """Classes first and planes before rows, as nnU-Net has them, and no segmentation beside them."""
    Path("probabilities").mkdir()
    for name in ("case1", "case2"):
        nodules = lesions(rng)
        lung = np.where(nodules > 0.1, 0, 0.9).astype(np.float32) * (1 - nodules)
        classes = np.stack([1 - lung - nodules, lung, nodules]).transpose(0, 3, 2, 1)
        np.savez_compressed(f"probabilities/{name}.npz", probabilities=classes)
        Path(f"probabilities/{name}.pkl").write_bytes(b"never opened")
        save(Path(f"masks/{name}/lung_nodules.nii.gz"), (nodules > 0.5).astype(np.uint8))
        save(Path(f"masks/{name}/lung.nii.gz"), (lung > 0.5).astype(np.uint8))


def spinal_cord_toolbox(rng):
    """The mean of five maps, of which each is 0 below one half."""
    for name in ("sub-01", "sub-02"):
        folder, soft = Path(f"data/{name}/anat"), lesions(rng)
        folds = [np.where(shifted > 0.5, shifted, 0) for shifted in (soft - 0.04 * i for i in range(5))]
        save(folder / f"{name}_T2w.nii.gz", rng.random((24, 20, 16)).astype(np.float32) * 500)
        save(folder / f"{name}_T2w_lesion_seg.nii.gz", np.mean(folds, axis=0).astype(np.float32))
        (folder / f"{name}_T2w_lesion_seg.json").write_text(json.dumps({"GeneratedBy": []}))


def lst_ai(rng):
    """The same names in the folder of every patient."""
    for name in ("sub-01", "sub-02"):
        for member in ("", "_1", "_2", "_3"):
            save(Path(f"lst/{name}/sub-X_ses-Y_space-FLAIR_seg-lst_prob{member}.nii.gz"), lesions(rng))
        save(
            Path(f"lst/{name}/sub-X_ses-Y_space-flair_FLAIR.nii.gz"), rng.random((24, 20, 16)).astype(np.float32) * 500
        )
        save(Path(f"lst/{name}/results/space-flair_seg-lst.nii.gz"), (lesions(rng) > 0.5).astype(np.uint8))
        Path(f"lst/{name}/results/lesion_stats.csv").write_text("Num_Lesions\n2\n")


def microscopy(rng):
    tifffile = pytest.importorskip("tifffile", reason="needs the extra [tiff]")
    image = pytest.importorskip("PIL.Image", reason="needs the extra [tiff]")
    size = {f"PhysicalSize{axis}": 0.5 for axis in "XYZ"}
    for folder in ("stacks", "new_stacks", "pictures"):
        Path(folder).mkdir()
    table = ["picture;cells"]
    for i in range(1, 31):
        folder, name = ("stacks", f"A{i}") if i < 29 else ("new_stacks", f"B{i}")
        tifffile.imwrite(f"{folder}/well_{name}.ome.tif", lesions(rng), metadata={"axes": "ZYX"} | size)
        table += [f"well_{name}.czi;{sum(rng.random(3) < (0.9, 0.68, 0.46))}"] if i < 26 else []
    Path("counts.csv").write_text("\n".join(table), "utf-8-sig")
    for name in "12":
        image.fromarray(np.round(lesions(rng)[:, :, 7] * 255).astype(np.uint8)).save(f"pictures/leaf_{name}.png")


def pictures_of_cells(rng):
    h5py = pytest.importorskip("h5py", reason="needs the extra [hdf5]")
    for folder in ("ilastik", "cellpose", "stardist"):
        Path(folder).mkdir()
    for name in "ab":
        p = lesions(rng)
        with h5py.File(f"ilastik/{name}_Probabilities.h5", "w") as file:
            exported = file.create_dataset("exported_data", data=np.stack([p, 1 - p], axis=-1), chunks=True)
            exported.attrs["axistags"] = json.dumps({"axes": [{"key": key, "typeFlags": 2} for key in "zyxc"]})
        inside = np.clip(p, 1e-6, 1 - 1e-6)
        np.save(f"cellpose/{name}.npy", np.log(inside / (1 - inside)))
        np.save(f"stardist/{name}.npy", p)


MAKERS = {
    "nnU-Net": nnunet,
    "MONAI bundle": monai_bundle,
    "TotalSegmentator": total_segmentator,
    "Spinal Cord Toolbox": spinal_cord_toolbox,
    "LST-AI": lst_ai,
    "Microscopy": microscopy,
    "ilastik, cellpose, StarDist": pictures_of_cells,
}


def commands_of(text):
    blocks = re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("lesioncount ")]


def test_every_recipe_has_its_files():
    assert list(MAKERS) == list(RECIPES)
    assert all(commands_of(text) for text in RECIPES.values())


@pytest.mark.parametrize("name", MAKERS)
def test_recipe(name, tmp_path, monkeypatch, rng, capsys):
    monkeypatch.chdir(tmp_path)
    MAKERS[name](rng)
    for command in commands_of(RECIPES[name]):
        arguments = shlex.split(command)[1:]
        assert main(arguments) == 0, capsys.readouterr()
        with (Path(arguments[arguments.index("-o") + 1]) / "counts.tsv").open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        assert [row["status"] for row in rows] == ["ok"] * (28 if "--known" in arguments else 2)
        assert {int(row["cc_count"]) for row in rows} == ({3} if name == "nnU-Net" else {2}), rows
        assert all(1.2 < float(row["count_mean"]) < 4.5 for row in rows)


@pytest.mark.parametrize("name", MAKERS)
def test_the_tree_that_is_shown_is_the_one_that_is_made(name, tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    MAKERS[name](rng)
    tree = re.search(r"^```text\n(.*?)^```", RECIPES[name], re.MULTILINE | re.DOTALL)[1]
    folder = None
    for line in tree.splitlines():
        if not line.startswith(" "):
            folder = Path(line.strip())
            continue
        for shown in line.split():
            assert "…" in shown or (folder / shown).is_file(), shown


def test_weak_lesions_that_a_tool_removed_are_said(tmp_path, monkeypatch, rng, capsys):
    monkeypatch.chdir(tmp_path)
    soft = lesions(rng)
    save(Path("data/sub-01/anat/sub-01_T2w_lesion_seg.nii.gz"), np.where(soft > 0.5, soft, 0).astype(np.float32))
    assert main(shlex.split(commands_of(RECIPES["Spinal Cord Toolbox"])[0])[1:]) == 0
    assert "no values between 0 and 0.5" in capsys.readouterr().out
