"""Which counters a moment falls into: every moment into one of each window, wherever and whenever clocks are set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighlock.budgets.hold import amounts
from weighlock.budgets.windows import Budget, Period, Rolling, Session, Window, caps, counters
from weighlock.modality import Modality

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "America/Santiago"]
MOMENTS = st.integers(1_704_067_200, 1_924_992_000).map(lambda at: datetime.fromtimestamp(at, UTC))


def budget(period: Period | Rolling, zone: str = "UTC", **limits: object) -> Budget:
    window = Window(period=period, timezone=zone, **{"requests": 10, **limits})  # type: ignore[arg-type]
    return Budget(scope="endpoint:e", window=window, of="e")


def key(period: Period | Rolling, zone: str, at: datetime) -> str:
    (counter,) = counters([budget(period, zone)], at)
    return counter.key


def ends_at(period: Period, zone: str, at: datetime) -> datetime:
    (cap,) = caps([budget(period, zone)], at)
    assert cap.ends_at is not None
    return cap.ends_at


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("zone", "noon", "hours"),
    [
        ("Europe/Berlin", "2026-03-29T12:00+02:00", 23),
        ("Europe/Berlin", "2026-10-25T12:00+01:00", 25),
        ("America/New_York", "2026-03-08T12:00-04:00", 23),
        ("America/New_York", "2026-11-01T12:00-05:00", 25),
        ("America/Santiago", "2026-09-06T12:00-03:00", 23),  # no midnight: it begins at one
        ("America/Santiago", "2026-04-04T12:00-03:00", 25),  # its last hour comes twice
        ("Australia/Lord_Howe", "2026-10-04T12:00+11:00", 23.5),
        ("Asia/Kathmandu", "2026-10-25T12:00+05:45", 24),
    ],
)
def test_a_day_is_as_long_as_its_place_makes_it(zone: str, noon: str, hours: float) -> None:
    end = ends_at(Period.DAY, zone, moment(noon))
    begin = end - timedelta(hours=hours)

    assert key(Period.DAY, zone, begin) == key(Period.DAY, zone, end - timedelta(microseconds=1))
    assert ends_at(Period.DAY, zone, begin - timedelta(microseconds=1)) == begin
    assert key(Period.DAY, zone, begin).endswith(noon[:10])


@pytest.mark.parametrize(
    ("zone", "at", "month", "end"),
    [
        ("UTC", "2027-02-28T23:59:59+00:00", "2027-02", "2027-03-01T00:00+00:00"),
        ("UTC", "2028-02-29T12:00+00:00", "2028-02", "2028-03-01T00:00+00:00"),
        ("Europe/Berlin", "2026-12-31T22:59+00:00", "2026-12", "2026-12-31T23:00+00:00"),
        ("Europe/Berlin", "2026-12-31T23:00+00:00", "2027-01", "2027-01-31T23:00+00:00"),
        ("America/New_York", "2026-11-01T03:59+00:00", "2026-10", "2026-11-01T04:00+00:00"),
        ("Pacific/Auckland", "2026-08-31T12:00+00:00", "2026-09", "2026-09-30T11:00+00:00"),
        ("Asia/Kathmandu", "2026-01-31T18:14+00:00", "2026-01", "2026-01-31T18:15+00:00"),
    ],
)
def test_a_month_ends_where_its_place_says(zone: str, at: str, month: str, end: str) -> None:
    assert key(Period.MONTH, zone, moment(at)) == f"endpoint:e|month|{month}"
    assert ends_at(Period.MONTH, zone, moment(at)) == moment(end)


def test_an_hour_that_comes_twice_is_two_windows() -> None:
    first, again = moment("2026-10-25T00:30+00:00"), moment("2026-10-25T01:30+00:00")

    assert key(Period.HOUR, "Europe/Berlin", first).endswith("|2026-10-25T02:00+02:00")
    assert key(Period.HOUR, "Europe/Berlin", again).endswith("|2026-10-25T02:00+01:00")


@given(st.sampled_from(Period), st.sampled_from(ZONES), MOMENTS)
def test_a_window_holds_its_moment_until_it_ends_and_then_another_begins(
    period: Period, zone: str, at: datetime
) -> None:
    end = ends_at(period, zone, at)

    longest = {Period.MINUTE: 60, Period.HOUR: 3600, Period.DAY: 25 * 3600, Period.MONTH: 31 * 86_400 + 3600}[period]
    assert timedelta() < end - at <= timedelta(seconds=longest)
    last = end - timedelta(microseconds=1)
    changes = at.astimezone(ZoneInfo(zone)).utcoffset() != last.astimezone(ZoneInfo(zone)).utcoffset()
    if not (period in (Period.MINUTE, Period.HOUR) and changes):  # one that clocks cut short is over sooner
        assert key(period, zone, at) == key(period, zone, last)
    assert key(period, zone, end) != key(period, zone, at)


@given(st.integers(1, 40_000_000), MOMENTS, st.floats(0, 1))
def test_what_is_used_counts_in_a_rolling_window_for_its_whole_length_and_a_piece_longer_at_most(
    seconds: int, used_at: datetime, share: float
) -> None:
    rolling = Rolling(seconds)
    (counter,) = counters([budget(rolling)], used_at)

    def counts(after_s: float) -> bool:
        (cap,) = caps([budget(rolling)], used_at + timedelta(seconds=after_s))
        assert len(cap.counters) <= 60
        return counter.key in cap.counters

    assert counts(seconds * share)
    assert not counts(seconds + rolling.piece_s + 1)
    assert rolling.piece_s <= seconds / 59 + 1
    assert counter.keep_until is not None
    assert counter.keep_until >= used_at + timedelta(seconds=seconds)


def test_what_grows_later_is_held_against_the_window_that_reserved_it_and_a_rolling_one_as_it_is_by_then() -> None:
    begun = moment("2026-11-30T23:59:30+00:00")
    later = begun + timedelta(seconds=90)
    both = [budget(Period.DAY), budget(Rolling(120))]

    day, rolling = caps(both, later, begun)

    assert day.counters == ("endpoint:e|day|2026-11-30",)
    assert set(rolling.counters) >= {counters(both, begun)[1].key, counters(both, later)[1].key}


def test_a_session_has_no_end_and_one_counter() -> None:
    session = Budget(scope="session:abc", window=Session(cost_usd=Decimal(2), warn_at=Decimal("0.7")), of="agent")

    (cap,) = caps([session], moment("2026-11-30T12:00+00:00"))

    assert (cap.window, cap.counters, cap.ends_at) == ("session", ("session:abc|session",), None)
    assert (cap.limit, cap.warn_at) == (2_000_000, 1_400_000)
    assert session.knob(cap.metric) == "session.cost_usd of agent"


def test_limits_are_rounded_down_and_needs_up_so_that_no_fraction_slips_through() -> None:
    window = budget(
        Period.DAY, requests=None, cost_usd=Decimal("0.0000019"), tokens={Modality.VIDEO: 5}, warn_at=Decimal("0.5")
    )

    money, video = caps([window], moment("2026-11-30T12:00+00:00"))

    assert (money.metric, money.limit, money.warn_at) == ("micro_usd", 1, 1)
    assert (video.metric, video.limit, video.warn_at) == ("tokens.VIDEO", 5, 3)
    assert amounts(cost_usd=Decimal("0.0000011"), tokens={Modality.VIDEO: 7, Modality.TEXT: 0}) == {
        "requests": 1,
        "micro_usd": 2,
        "tokens.VIDEO": 7,
    }
    assert window.knob(video.metric) == "windows.day.tokens.video of e"


def test_windows_of_one_name_and_scope_are_one_counter() -> None:
    twice = [budget(Period.DAY), budget(Period.DAY, prompt_tokens=5)]

    assert len(counters(twice, moment("2026-11-30T12:00+00:00"))) == 1
