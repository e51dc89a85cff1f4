"""Labels of sessions → their order in time: by their numbers, as dates, or as somebody says."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date, datetime
from typing import NamedTuple

from lesioncount.errors import MapFileError, listed

# A date without anything between its parts, or with the same sign between all.
_PARTS = re.compile(r"(\D*)(?:(\d{8})|(\d{4})([-_.])(\d\d?)\4(\d\d?)|(\d\d?)([-_.])(\d\d?)\8(\d{4}))(\D*)", re.ASCII)

# How dates are written, by what comes first: where year, month and day are among the parts.
_READINGS = {"year": (0, 1, 2), "day": (2, 1, 0), "month": (2, 0, 1)}

# How else they may be written, by the number of digits.
_SHORT_FORMS = {6: ("%d%m%y", "%m%d%y", "%y%m%d", "%m%Y"), 8: ("%d%m%Y", "%m%d%Y")}

# Scans were made, and visits planned, in these years: 8 digits outside of them are no date.
_YEARS = range(1900, 2101)


class SessionOrder(NamedTuple):
    """Sessions, the earliest first, and what a reader must know of the order."""

    sessions: list[str]
    note: str | None = None


def in_order(sessions: Collection[str], baseline: str | None = None) -> SessionOrder:
    """The order of sessions in time; raise if it is not clear.

    Parameters
    ----------
    sessions : collection of str
        All labels of a run, without ``ses-``.
    baseline : str, optional
        The session that comes first, whatever its label says.

    Examples
    --------
    >>> in_order({"31122023", "01012024"}).sessions
    ['31122023', '01012024']
    """
    first = [] if baseline is None else [baseline]
    rest = sorted(set(sessions) - set(first))
    if len(rest) < 2:
        return SessionOrder([*first, *rest])
    dates = {how: dict(_dates(sessions, how)) for how in _READINGS}
    if not any(dates.values()):
        return SessionOrder([*first, *_by_number(rest)])
    return _by_date(rest, dates, baseline)


def _by_number(sessions: list[str]) -> list[str]:
    """In the order of their numbers; raise where they have none, or mean different things."""
    parts = {one: re.fullmatch(r"(\D*)(\d+)(\D*)", one) for one in sessions}
    kinds = {match.group(1, 3) if match else None for match in parts.values()}
    numbers = {int(match.group(2)) for match in parts.values() if match}
    if len(kinds) > 1 or len(numbers) < len(sessions):
        raise _unclear(sessions)
    digits = {one: match.group(2) for one, match in parts.items() if match}
    ordered = sorted(sessions, key=lambda one: int(digits[one]))
    if any(sorted(ordered, key=days.__getitem__) != ordered for days in _short_dates(digits)):
        raise _unclear(sessions, " They may be dates, and then numbers are not their order.")
    return ordered


def _short_dates(digits: Mapping[str, str]) -> Iterator[dict[str, date]]:
    """Every way in which all labels are days of the past: two digits for the year, no day, or no zero before it."""
    longest = max(map(len, digits.values()))
    width = longest + longest % 2  # all may lack the zero
    for form in _SHORT_FORMS.get(width, ()):
        try:
            days = {one: datetime.strptime(text.zfill(width), form).date() for one, text in digits.items()}  # noqa: DTZ007 - days have no time zone
        except ValueError:
            continue
        if all(day.year in _YEARS and day <= date.today() for day in days.values()):  # noqa: DTZ011 - as above
            yield days


def _by_date(rest: list[str], dates: Mapping[str, Mapping[str, date]], baseline: str | None) -> SessionOrder:
    """In the order of their dates; raise if these can be read in two ways that give two orders, or in none."""
    n = len(rest) + (baseline is not None)
    known = {how: days for how, days in dates.items() if len(days) == len(set(days.values())) == n}
    if baseline is not None:  # where dates can be read in two ways, it also says in which
        known = {how: days for how, days in known.items() if min(days.values()) == days[baseline]} or known
    orders = {tuple(sorted(rest, key=days.__getitem__)) for days in known.values()}
    if len(orders) != 1:
        why = "and can be read with the day or the month first" if orders else "but not all are written in the same way"
        raise _unclear(rest, f" They look like dates, {why}.")
    order = [*([] if baseline is None else [baseline]), *orders.pop()]
    if "year" in known:  # the order of numbers
        return SessionOrder(order)
    how, days = next(iter(known.items()))
    note = f"Sessions are read as dates with the {how} first: {order[0]} is {days[order[0]]}."
    return SessionOrder(order, note if len(known) == 1 else "Sessions are read as dates, and ordered by them.")


def _dates(sessions: Collection[str], how: str) -> Iterator[tuple[str, date]]:
    """The labels that are dates, if they are written so; none unless all labels have the digits of a date."""
    found = {one: _PARTS.fullmatch(one) for one in sessions}
    if len({None if match is None else match.group(1, 11) for match in found.values()}) > 1:
        return
    for one, match in found.items():
        day = None if match is None else _date(match, how)
        if day is not None:
            yield one, day


def _date(match: re.Match[str], how: str) -> date | None:
    parts, digits, at = [part for part in match.group(3, 5, 6, 7, 9, 10) if part], match[2], 4 if how == "year" else 2
    parts = parts or [digits[:at], digits[at : at + 2], digits[at + 2 :]]
    year, month, day = (parts[place] for place in _READINGS[how])
    try:
        found = date(int(year), int(month), int(day))
    except ValueError:
        return None
    return found if len(year) == 4 and found.year in _YEARS else None


def _unclear(sessions: list[str], why: str = "") -> MapFileError:
    return MapFileError(
        f"Which of the sessions {listed(sessions)} comes first?{why} List them in the order of time, such as "
        f"--sessions {' '.join(sessions)}; or say which is the first (--baseline {sessions[0]}), or list the pairs in "
        "a table (--pairs)."
    )
