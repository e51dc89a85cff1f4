"""What was given → the courses of patients: their maps in the order of time, never paired by guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path, PurePosixPath

from lesioncount.cohort.images import session_images
from lesioncount.cohort.item import FileFacts, ScanFiles
from lesioncount.cohort.names import name_of
from lesioncount.cohort.scans import Selection
from lesioncount.cohort.session_order import SessionOrder, in_order
from lesioncount.cohort.tables import read_pairs
from lesioncount.cohort.whose import label_of
from lesioncount.errors import MapFileError, listed
from lesioncount.files.remote_path import RemotePath, absolute_text, to_path


@dataclass(frozen=True)
class Course:
    """The maps of one patient, in the order of time.

    Attributes
    ----------
    name : str
        In the results.
    scans : tuple of ScanFiles
        Two or more.
    sessions : tuple of str
        What each is called in tables: its session, or the number of its time point.
    was_known : bool
        Whether the folder of results has a record of it from an earlier run, which is made again if it was changed.
    notes : tuple of str
        What a reader must know of how its maps were put together.
    """

    name: str
    scans: tuple[ScanFiles, ...]
    sessions: tuple[str, ...]
    was_known: bool = False
    notes: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        """Why it cannot be compared, where that is known before."""
        return next((scan.problem for scan in self.scans if scan.problem is not None), None)

    @property
    def paths(self) -> tuple[str, ...]:
        """Where its maps are."""
        return tuple(str(scan.path.absolute()) for scan in self.scans)

    @property
    def participant(self) -> str | None:
        """Whose course it is, where that is known."""
        return self.scans[-1].whose.participant

    def pair_name(self, before: int) -> str:
        """What a session and the next are called together; as the course, if there are no others."""
        sessions = _joined(self.sessions[before : before + 2])
        if len(self.scans) == 2 and (not self.has_sessions or self.name.endswith(f"__{sessions}")):
            return self.name
        return f"{self.name}__{sessions}"

    def session_name(self, place: int) -> str:
        """What a session of it is called."""
        return session_name(self.name, self.sessions[place])

    @property
    def has_sessions(self) -> bool:
        """Whether sessions have names, and not only numbers."""
        return self.sessions == tuple(scan.whose.session for scan in self.scans)


@dataclass(frozen=True)
class Courses:
    """All courses, and the patients of whom there is one map only."""

    courses: tuple[Course, ...]
    alone: tuple[str, ...] = ()

    def with_images(self, images: Path, *, suffix: str) -> Courses:
        """The same, with the image of each session."""
        maps = [[FileFacts.unread(scan) for scan in course.scans] for course in self.courses]
        found = session_images(maps, images, suffix=suffix)
        return replace(self, courses=tuple(map(_with_images, self.courses, found)))


@dataclass(frozen=True)
class CourseSelection:
    """How maps are paired.

    Attributes
    ----------
    selection : Selection
        Which files are maps, whose they are, and what belongs to them.
    pairs : path, optional
        A table with the columns ``baseline`` and ``followup``, paths of maps; in place of everything that is found.
    sessions : sequence of str
        Which sessions are compared, in this order. Default: all, in the order of their dates or numbers.
    baseline : str, optional
        The session that comes first, where that is not clear or not so.
    """

    selection: Selection = field(default_factory=Selection)
    pairs: str | Path | None = None
    sessions: Sequence[str] = ()
    baseline: str | None = None

    def find(self, inputs: Sequence[str | Path], out: Path | None = None, *, mask: Path | None = None) -> Courses:
        """The courses of patients.

        Parameters
        ----------
        inputs : sequence of path
            One folder with sessions of patients; or for each time a folder or a file, the first before the second.
        out : Path, optional
            Folder of the results, if there is to be one.
        mask : path, optional
            As for a count: a mask for all maps, a folder, or a pattern.
        """
        images = self.selection.images
        if images is not None:  # looked for when it is known which maps are compared
            plain = replace(self, selection=replace(self.selection, images=None))
            found = plain.find(inputs, out, mask=mask)
            return found.with_images(to_path(images), suffix=self.selection.images_suffix)
        found = self._courses(inputs, out, mask)
        _check_apart(found.courses)
        if not found.courses:
            raise MapFileError(_nothing(found.alone))
        return replace(found, courses=tuple(map(_with_note_of_same, found.courses)))

    def _courses(self, inputs: Sequence[str | Path], out: Path | None, mask: Path | None) -> Courses:
        chosen = "--sessions" if self.sessions else "--baseline" if self.baseline is not None else None
        if self.pairs is not None:
            if inputs or chosen:
                what = "the folders out, or --pairs" if inputs else f"{chosen} out"
                raise MapFileError(f"The table of pairs names all maps, in the order of time: leave {what}.")
            return self._of_table(Path(self.pairs), mask)
        if len(inputs) == 1:
            return self._of_sessions(self.selection.find(inputs, out, mask=mask))
        if not inputs:
            raise MapFileError("Expected maps: BASELINE FOLLOWUP, one folder with sessions, or a table (--pairs).")
        if chosen:
            raise MapFileError(f"Each folder is one time point here: {chosen} goes with one folder that holds them.")
        times = [self.selection.find([given], out, mask=mask) for given in inputs]
        if all(len(scans) == 1 for scans in times) and not any(to_path(given).is_dir() for given in inputs):
            return Courses((_of_files([scans[0] for scans in times]),))
        return _of_folders(times)

    def _of_sessions(self, scans: Sequence[ScanFiles]) -> Courses:
        """From one folder: all scans of a participant, in the order of their sessions."""
        patients: dict[str, dict[str, ScanFiles]] = {}
        for scan in scans:
            who, (participant, session) = scan.whose.participant, scan.whose.key
            if who is None or participant is None or session is None:
                raise MapFileError(scan.problem or _whose_and_when(scan))
            _add_visit(patients.setdefault(who, {}), session, scan, f"session {scan.whose.session} of {who}")
        wanted, note = self._order({session for visits in patients.values() for session in visits})
        chosen = {who: {one: visits[one] for one in wanted if one in visits} for who, visits in patients.items()}
        found = _of_visits(chosen)
        return found if note is None else replace(found, courses=tuple(_noted(one, note) for one in found.courses))

    def _order(self, sessions: set[str]) -> SessionOrder:
        """The sessions that are compared, the earliest first."""
        first = label_of(self.baseline)
        if first is not None and (self.sessions or first not in sessions):
            what = "leave --baseline or --sessions out" if self.sessions else f"there is no session {first!r}"
            raise MapFileError(
                f"Expected the session that comes first (--baseline), but {what}. The maps have the sessions "
                f"{listed(sorted(sessions))}."
            )
        if not self.sessions:
            return in_order(sessions, first)
        wanted = [str(label_of(one)) for one in self.sessions]
        unknown = [one for one in wanted if one not in sessions]
        twice = [one for one in wanted if wanted.count(one) > 1]
        if unknown or twice or len(wanted) < 2:
            what = f"there is no session {unknown[0]!r}" if unknown else "one is not enough"
            what = f"{twice[0]!r} is given twice" if twice else what
            raise MapFileError(
                f"Expected two different sessions or more (--sessions), but {what}. The maps have the sessions "
                f"{listed(sorted(sessions))}."
            )
        return SessionOrder(wanted)

    def _of_table(self, table: Path, mask: Path | None) -> Courses:
        rows = read_pairs(table)
        paths = {absolute_text(path): path for row in rows for path in (row.baseline, row.followup)}
        scans = {absolute_text(scan.path): scan for scan in self.selection.find(list(paths.values()), mask=mask)}
        courses = [
            _of_files([scans[absolute_text(row.baseline)], scans[absolute_text(row.followup)]], row.participant)
            for row in rows
        ]
        return Courses(tuple(_told_apart(courses)))


def _noted(course: Course, note: str) -> Course:
    return replace(course, notes=(*course.notes, note))


def _with_note_of_same(course: Course) -> Course:
    """The same, with a note if a file is compared with itself."""
    places = [path if isinstance(path, RemotePath) else path.resolve() for path in (one.path for one in course.scans)]
    twice = [names for names, (a, b) in zip(pairwise(course.sessions), pairwise(places), strict=True) if a == b]
    same = "The maps of sessions {} and {} are the same file: whatever is new or gone was not looked for."
    return replace(course, notes=(*course.notes, *(same.format(*names) for names in twice)))


def _told_apart(courses: Sequence[Course]) -> Iterator[Course]:
    """Several pairs of one participant are called after their sessions; without these, after the last map."""
    names = Counter(course.name for course in courses)
    for course in courses:
        if names[course.name] == 1:
            yield course
        elif course.has_sessions:
            yield replace(course, name=f"{course.name}__{_joined(course.sessions)}")
        else:
            yield replace(course, name=course.scans[-1].name)


def _with_images(course: Course, images: Sequence[Path | None]) -> Course:
    scans = zip(course.scans, images, strict=True)
    return replace(course, scans=tuple(replace(scan, image=image) for scan, image in scans))


def _of_files(scans: Sequence[ScanFiles], participant: str | None = None) -> Course:
    """From files that somebody has put together; raise if they say themselves that they are of several patients."""
    for scan in scans[1:]:
        if replace(scans[0].whose, session=None).contradicts(replace(scan.whose, session=None)):
            raise MapFileError(
                f"{scans[0].path} is of {scans[0].whose.participant}, but {scan.path} of {scan.whose.participant}."
            )
    if participant is not None:
        scans = [replace(scan, whose=replace(scan.whose, participant=participant)) for scan in scans]
    return _course(scans)


def _of_folders(times: Sequence[Sequence[ScanFiles]]) -> Courses:
    """From a folder for each time: maps of the same participant, or of the same name where there are none."""
    patients: dict[str, dict[str, ScanFiles]] = {}
    for time, scans in enumerate(times, start=1):
        for scan in scans:
            who = scan.whose.participant or scan.name
            _add_visit(patients.setdefault(who, {}), str(time), scan, f"{who} at time {time}")
    return _of_visits(patients)


def _add_visit(visits: dict[str, ScanFiles], time: str, scan: ScanFiles, what: str) -> None:
    """Add the map of a time, of which there is one only."""
    other = visits.setdefault(time, scan)
    if other is not scan:
        raise MapFileError(
            f"Which map is {what}: {other.path} or {scan.path}? Choose by the end of their names (--suffix), or list "
            "the pairs in a table (--pairs)."
        )


def _of_visits(patients: Mapping[str, Mapping[str, ScanFiles]]) -> Courses:
    """Patients with two maps or more, each under its time, and those with one."""
    return Courses(
        tuple(_course([*visits.values()], [*visits]) for visits in patients.values() if len(visits) > 1),
        tuple(who for who, visits in patients.items() if len(visits) < 2),
    )


def _course(scans: Sequence[ScanFiles], times: Sequence[str] | None = None) -> Course:
    return Course(_name(scans), tuple(scans), _session_names(scans, times))


def _session_names(scans: Sequence[ScanFiles], times: Sequence[str] | None = None) -> tuple[str, ...]:
    """The sessions of scans; their numbers, where these do not tell them apart."""
    names = tuple(scan.whose.session or "" for scan in scans)
    numbers = times or [str(place + 1) for place in range(len(scans))]
    return names if all(names) and len(set(names)) == len(names) else tuple(numbers)


def _name(scans: Sequence[ScanFiles]) -> str:
    """Of the participant; else of the last map."""
    is_known = all(scan.whose.participant is not None for scan in scans)
    return name_of(PurePosixPath(str(scans[-1].whose.participant))) if is_known else scans[-1].name


def session_name(course: str, session: str) -> str:
    """What a session of a course is called."""
    return f"{course}__{_joined([session])}"


def _joined(sessions: Sequence[str]) -> str:
    """Sessions as a part of names of files."""
    return "__".join(name_of(PurePosixPath(session)) for session in sessions)


def _check_apart(courses: Sequence[Course]) -> None:
    """Raise if two comparisons, of patients or of pairs, would have the same name."""
    taken: dict[str, Path] = {}
    for course in courses:
        path = course.scans[-1].path
        for name in {course.name, *(course.pair_name(place) for place in range(len(course.scans) - 1))}:
            if name in taken:
                raise MapFileError(
                    f"Two comparisons would both be called {name}: one ends with {taken[name]}, the other with {path}. "
                    "Compare them into two folders."
                )
            taken[name] = path


def _whose_and_when(scan: ScanFiles) -> str:
    return (
        f"Whose scan is {scan.path}, and when was it made? One folder is compared by the sessions of its participants, "
        "as BIDS has them (sub-01/ses-01/…). Say where they are in its names (--name-pattern), give two folders, or "
        "list the pairs in a table (--pairs)."
    )


def _nothing(alone: Sequence[str]) -> str:
    names = f" There is one map only of {listed(sorted(alone))}." if alone else ""
    return (
        f"No patient has two maps to compare.{names} Maps in two folders are of one patient if they have the same "
        "name, or the same participant in the manner of BIDS; others are put together by a table (--pairs)."
    )
