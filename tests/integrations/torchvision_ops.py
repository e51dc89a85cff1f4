"""Makes a torchvision that was built for another torch importable; `make nnunet` installs it as ``sitecustomize``.

nnU-Net imports torchvision through one of its dependencies, and uses nothing of it. Where its compiled part does not
load, the import stops at operators that are not there.
"""

if __name__ == "sitecustomize":
    import torch

    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
