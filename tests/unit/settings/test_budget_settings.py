"""Budgets as an operator writes them, and what a request counts in then."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from unit.settings.test_settings_load import BASE, loaded, only_mistake
from weighlock.budgeting import budgets_for, store_of
from weighlock.budgets.hold import Reach
from weighlock.budgets.reservation import OnStoreFailure
from weighlock.budgets.windows import Period, Rolling, Session
from weighlock.errors import ConfigError
from weighlock.settings.model import StoreKind

BUDGETS = BASE.replace(
    "      day: {cost_usd: 50}",
    """\
      day: {cost_usd: 50}
      rolling 3600s: {requests: 600, tokens: {video: 60000}}
    session: {cost_usd: 2.00, prompt_tokens: 3000000}""",
).replace(
    "endpoints:",
    """\
  session: {warn_at: 0.7}
tenants:
  each: {windows: {day: {cost_usd: 20}, minute: {requests: 60}}}
  acme: {windows: {day: {cost_usd: 80}, minute: null}}
  Big-Corp.example:
  unlimited: {windows: {day: null, minute: null}}
overall: {windows: {month: {cost_usd: 9000}}}
state: {store: memory, on_failure: admit}
endpoints:""",
)


def test_windows_of_an_endpoint_merge_by_period_and_a_session_by_key(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BUDGETS)

    triage, quiet = settings.endpoint("bug_triage"), settings.endpoint("quiet")

    assert list(triage.windows) == [Period.DAY, Period.MONTH, Rolling(3600)]
    assert triage.windows[Rolling(3600)].requests == 600
    assert triage.session == Session(cost_usd=Decimal(2), prompt_tokens=3_000_000, warn_at=Decimal("0.7"))
    assert (list(quiet.windows), quiet.session.limits) == ([Period.MONTH], {})


def test_a_request_counts_in_its_endpoint_its_tenant_all_together_and_its_session(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BUDGETS)

    budgets = budgets_for(settings, "bug_triage", "acme", "4711")

    assert [(one.scope, one.window.name, one.of) for one in budgets] == [
        ("endpoint:bug_triage", "day", "bug_triage"),
        ("endpoint:bug_triage", "month", "bug_triage"),
        ("endpoint:bug_triage", "rolling 3600s", "bug_triage"),
        ("tenant:acme", "day", "tenants.acme"),
        ("overall", "month", "overall"),
        ("session:acme:4711", "session", "bug_triage"),
    ]
    assert budgets[3].window.limits == {"micro_usd": 80_000_000}


def test_a_tenant_nobody_named_has_what_each_has_and_a_request_of_nobody_has_none(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BUDGETS)

    other = budgets_for(settings, "quiet", "other", "4711")
    nobody = budgets_for(settings, "quiet")

    assert [(one.scope, one.window.name, one.of) for one in other[1:3]] == [
        ("tenant:other", "minute", "tenants.each"),
        ("tenant:other", "day", "tenants.each"),
    ]
    assert [one.scope for one in nobody] == ["endpoint:quiet", "overall"]
    assert settings.tenant("Big-Corp.example") == settings.tenant("other")
    assert settings.tenant("unlimited") == {}
    with pytest.raises(ConfigError, match="unknown endpoint"):
        budgets_for(settings, "nowhere")


def test_variables_reach_every_budget(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        BUDGETS,
        WEIGHLOCK_ENDPOINTS__BUG_TRIAGE__WINDOWS__ROLLING_3600S__REQUESTS="7",
        WEIGHLOCK_TENANTS__ACME__WINDOWS__DAY__COST_USD="1",
        WEIGHLOCK_OVERALL__WINDOWS__ROLLING_60S__REQUESTS="9",
        WEIGHLOCK_STATE__ON_FAILURE="reject",
    )

    assert settings.endpoint("bug_triage").windows[Rolling(3600)].requests == 7
    assert settings.tenant("acme")[Period.DAY].cost_usd == 1
    assert settings.overall[Rolling(60)].requests == 9
    assert settings.state.on_failure is OnStoreFailure.REJECT
    assert "no tenant 'acne' in the files; did you mean 'acme'?" in only_mistake(
        tmp_path, BUDGETS, WEIGHLOCK_TENANTS__ACNE__WINDOWS__DAY__COST_USD="1"
    )


def test_where_a_tenants_limit_comes_from_is_told(tmp_path: Path) -> None:
    origin = loaded(tmp_path, BUDGETS).origin

    each = origin["tenants.each.windows.minute.requests"]
    assert origin["tenants.Big-Corp.example.windows.minute.requests"] == f"{each} (each)"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rolling 3600s", "roling 3600s", "windows.roling 3600s: unknown key; did you mean 'rolling 3600s'?"),
        ("rolling 3600s", "rolling 1h", "windows.rolling 1h: unknown key; did you mean 'rolling 3600s'?"),
        ("rolling 3600s", "rolling 0s", "unknown key; did you mean 'rolling 3600s'?"),
        (
            "{requests: 600",
            "{timezone: UTC, requests: 600",
            "rolling 3600s.timezone: a rolling window has no time zone",
        ),
        ("requests: 600", "reqests: 600", "reqests: unknown key; did you mean 'requests'?"),
        ("requests: 600", "requests: -1", "greater than or equal to 0"),
        ("cost_usd: 2.00", "cost: 2.00", "session.cost: unknown key; did you mean 'cost_usd'?"),
        ("warn_at: 0.7", "warn_at: 1.7", "session.warn_at: input should be less than or equal to 1"),
        ("acme:", "ac me:", "tenants.ac me: "),
        (
            "store: memory",
            "store: redis",
            "`store: redis` and url_env, the variable that holds its address, belong tog",
        ),
        ("store: memory", "store: sqlite, url_env: X", "`store: redis` and url_env"),
        ("store: memory", "store: redis, url_env: 'redis://x'", "must be the name of a variable"),
        ("on_failure: admit", "on_failure: open", "not one of reject, admit"),
    ],
)
def test_a_budget_that_is_none_is_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in only_mistake(tmp_path, BUDGETS.replace(old, new, 1))


def test_the_store_is_the_one_the_settings_name(tmp_path: Path) -> None:
    memory = store_of(loaded(tmp_path, BUDGETS))
    sqlite = store_of(loaded(tmp_path, BUDGETS.replace("store: memory", "store: sqlite, dir: here")))

    assert (memory.reach, sqlite.reach) == (Reach.PROCESS, Reach.HOST)
    assert sqlite.standings([]) == ()
    assert (tmp_path / "here" / "budgets.db").is_file()
    sqlite.close()


def test_the_address_of_a_shared_store_is_in_its_variable(tmp_path: Path) -> None:
    text = BUDGETS.replace("store: memory", "store: redis, url_env: WEIGHLOCK_BUDGETS_URL")

    settings = loaded(tmp_path, text, WEIGHLOCK_BUDGETS_URL="redis://somewhere")

    assert (settings.state.store, settings.state.url_env) == (StoreKind.REDIS, "WEIGHLOCK_BUDGETS_URL")
    with pytest.raises(ConfigError, match="WEIGHLOCK_BUDGETS_URL is not set"):
        store_of(settings, {})
