"""What an operator writes, and what comes of it."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path

import pytest

from weighlock.codecs.encoding import Encoding
from weighlock.errors import ConfigError
from weighlock.planning.counting import CountPolicy, OnCountFailure, When
from weighlock.planning.levers import CutBy, Floor, Lever, LocalWork, Older
from weighlock.planning.placement import InlineBelow
from weighlock.request import Backend, MediaResolution, Modality
from weighlock.rules import RuleBook
from weighlock.scales import Asked, Scales
from weighlock.settings import (
    PACKAGED,
    Confinement,
    Endpoint,
    Mode,
    OnMimeMismatch,
    Period,
    Settings,
    find,
    load,
)
from weighlock.settings.model import History, MediaSettings
from weighlock.settings.spelled import as_document
from weighlock.uploads.policy import DeleteRemote, UploadPolicy

ROOT = Path(__file__).parents[3]

BASE = """\
version: 1
accounts:
  developer: {backend: developer, api_key_env: GEMINI_API_KEY}
  vertex_eu: {backend: vertex, project: acme, location: eu}
default:
  account: developer
  model: gemini-3.8-flash
  limits: {prompt_tokens: 100000, cost_usd: 0.25, bytes: 100MB, tokens: {video: 9000}}
  windows:
    month: {cost_usd: 2000, timezone: Europe/Berlin, warn_at: 0.8}
endpoints:
  bug_triage:
    account: vertex_eu
    mode: enforce
    limits: {prompt_tokens: 8000, tokens: {audio: 1600}}
    windows:
      day: {cost_usd: 50}
  quiet:
"""


def loaded(folder: Path, text: str, **environ: str) -> Settings:
    (folder / "weighlock.yaml").write_text(text, encoding="utf-8")
    return load(cwd=folder, environ=environ)


def mistakes(folder: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        loaded(folder, text, **environ)
    problems: list[str] = refused.value.figures["problems"]
    assert all(problem in str(refused.value) for problem in problems)
    return problems


def only_mistake(folder: Path, text: str, **environ: str) -> str:
    problems = mistakes(folder, text, **environ)
    assert len(problems) == 1, problems
    return problems[0]


def test_the_packaged_default_is_the_operators_file_byte_for_byte() -> None:
    assert PACKAGED.read_bytes() == (ROOT / "config" / "weighlock.yaml").read_bytes()


def test_the_packaged_default_loads_without_any_other_file(tmp_path: Path) -> None:
    settings = load(cwd=tmp_path, environ={})

    triage = settings.endpoint("bug_triage")
    assert settings.files == (PACKAGED,)
    assert settings.default.model == "gemini-3.8-flash"
    assert triage.owner == "team-support"
    assert triage.account.backend is Backend.DEVELOPER
    assert triage.limits.cost_usd == Decimal("0.02")
    assert triage.limits.tokens == {Modality.VIDEO: 2500, Modality.AUDIO: 1600, Modality.IMAGE: 2300}


def test_an_endpoint_starts_from_the_default_and_keeps_what_it_does_not_say(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BASE)

    triage = settings.endpoint("bug_triage")
    assert triage.model == "gemini-3.8-flash"
    assert triage.mode is Mode.ENFORCE
    assert triage.limits.prompt_tokens == 8000
    assert triage.limits.cost_usd == Decimal("0.25")
    assert triage.limits.bytes == 100_000_000
    assert triage.limits.tokens == {Modality.VIDEO: 9000, Modality.AUDIO: 1600}


def test_an_endpoint_of_no_words_is_the_default_under_another_name(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BASE)

    quiet = settings.endpoint("quiet")
    assert (quiet.limits, quiet.windows, quiet.account) == (
        settings.default.limits,
        settings.default.windows,
        settings.default.account,
    )


def test_what_is_said_of_counting_merges_and_the_rest_is_built_in(tmp_path: Path) -> None:
    text = BASE.replace("    mode: enforce", "    mode: enforce\n    count: {timeout_s: 1.5, on_failure: reject}")

    settings = loaded(tmp_path, text, WEIGHLOCK_DEFAULT__COUNT__WHEN="always")

    assert settings.default.count == CountPolicy(when=When.ALWAYS)
    assert settings.endpoint("bug_triage").count == CountPolicy(
        when=When.ALWAYS, timeout_s=1.5, on_failure=OnCountFailure.REJECT
    )


@pytest.mark.parametrize("value", ["{timeout_s: 0}", "{timeout_s: 2h}", "{when: never}", "{on_failure: retry}", "2"])
def test_a_wish_about_counting_that_is_none_is_a_mistake(tmp_path: Path, value: str) -> None:
    assert "endpoints.bug_triage.count" in only_mistake(
        tmp_path, BASE.replace("    mode: enforce", f"    count: {value}")
    )


def test_windows_merge_by_period_so_that_the_defaults_month_stays(tmp_path: Path) -> None:
    windows = loaded(tmp_path, BASE).endpoint("bug_triage").windows

    assert set(windows) == {Period.MONTH, Period.DAY}
    assert windows[Period.MONTH].cost_usd == 2000
    assert windows[Period.MONTH].timezone == "Europe/Berlin"
    assert windows[Period.DAY].cost_usd == 50


def test_null_takes_back_what_the_default_says(tmp_path: Path) -> None:
    text = BASE.replace("  quiet:\n", "  quiet: {limits: {cost_usd: null, tokens: null}, windows: {month: null}}\n")

    quiet = loaded(tmp_path, text).endpoint("quiet")

    assert quiet.limits.cost_usd is None
    assert quiet.limits.prompt_tokens == 100_000
    assert not quiet.limits.tokens
    assert not quiet.windows


def test_a_list_replaces_the_defaults_list(tmp_path: Path) -> None:
    text = BASE.replace("  model: gemini-3.8-flash\n", "  model: a\n  models: [a, b]\n").replace(
        "    mode: enforce\n", "    models: [a, c]\n"
    )

    assert loaded(tmp_path, text).endpoint("bug_triage").models == ("a", "c")


def test_no_name_asks_for_the_default_and_a_wrong_one_is_told_the_nearest(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BASE)

    assert settings.endpoint() is settings.endpoint("default") is settings.default
    assert not settings.default.limits.empty
    with pytest.raises(ConfigError, match=r"unknown endpoint 'bug_traige'; did you mean 'bug_triage'\?"):
        settings.endpoint("bug_traige")


def test_money_is_exact(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BASE.replace("cost_usd: 0.25", "cost_usd: 0.1"))

    assert settings.default.limits.cost_usd == Decimal("0.1")


def test_off_and_on_are_words_not_truths(tmp_path: Path) -> None:
    owner = loaded(tmp_path, BASE.replace("    mode: enforce\n", "    owner: on\n")).endpoint("bug_triage").owner

    assert owner == "on"


def test_a_resolution_clip_and_fps_that_always_apply_are_read(tmp_path: Path) -> None:
    media = "    media: {video: {apply: always, clip: last 60s, fps: 0.5, resolution: low}, image: {}}\n"
    video = loaded(tmp_path, BASE.replace("    mode: enforce\n", media)).endpoint("bug_triage").media[Modality.VIDEO]

    assert video.resolution is MediaResolution.LOW
    assert video.fps == 0.5
    assert video.clip is not None
    assert video.clip.span(240.0) == (180.0, 240.0)


def test_what_does_not_always_apply_is_where_a_lever_goes(tmp_path: Path) -> None:
    media = "{levers: [clip, fps], image: {floor: high}, video: {fps: 0.5, clip: last 60s, floor: {seconds: 20}}}"
    text = BASE.replace(
        "    mode: enforce\n",
        f"    media: {media}\n    local_work: never\n    prepare_deadline_s: 1.5m\n"
        "    history: {batch: 2, per_tool: true, older: low}\n",
    )

    endpoint = loaded(tmp_path, text).endpoint("bug_triage")

    assert endpoint.levers == (Lever.CLIP, Lever.FPS)
    assert endpoint.local_work is LocalWork.NEVER
    assert endpoint.prepare_deadline_s == 90.0
    assert loaded(tmp_path, text).default.prepare_deadline_s == 10.0
    assert endpoint.history == History(keep_media=8, batch=2, per_tool=True, older=Older.LOW)
    assert endpoint.media[Modality.IMAGE] == MediaSettings(always=False, floor=Floor(resolution=MediaResolution.HIGH))
    video = endpoint.media[Modality.VIDEO]
    assert (video.always, video.fps, video.floor) == (False, 0.5, Floor(seconds=20.0))


def test_how_films_are_cut_is_read_shown_and_handed_to_the_plan(tmp_path: Path) -> None:
    text = BASE.replace("    mode: enforce\n", "    media: {video: {cut: copy}}\n")

    settings = loaded(tmp_path, text)

    assert settings.endpoint("bug_triage").media[Modality.VIDEO] == MediaSettings(always=False, cut=CutBy.COPY)
    assert as_document(settings)["endpoints"]["bug_triage"]["media"]["video"] == {"cut": "copy"}
    shapings = [Scales(settings, RuleBook.packaged(), Asked(endpoint=name)).shaping for name in ("bug_triage", None)]
    assert [one.cut for one in shapings] == [CutBy.COPY, CutBy.EXACT]
    with pytest.raises(ConfigError, match="not one of exact, copy"):
        loaded(tmp_path, text.replace("cut: copy", "cut: fast"))


def test_metadata_stays_at_home_only_where_an_endpoint_says_so(tmp_path: Path) -> None:
    text = BASE.replace("    mode: enforce\n", "    media: {strip_metadata: true, levers: [reencode]}\n")

    settings = loaded(tmp_path, text)

    assert settings.endpoint("bug_triage").strip_metadata
    assert settings.endpoint("bug_triage").levers == (Lever.REENCODE,)
    assert not settings.default.strip_metadata


def test_how_much_goes_inline_is_read_one_by_one(tmp_path: Path) -> None:
    settings = loaded(tmp_path, f"{BASE}uploads: {{inline_below: {{developer: 20MB, pdf: null}}}}\n")

    assert settings.uploads.inline_below == InlineBelow(developer=20_000_000, vertex=6_000_000, pdf=15_000_000)


def test_how_much_of_a_type_goes_inline_is_read_by_its_own_name(tmp_path: Path) -> None:
    types = '{"video/*": 0, audio/x-wav: 2MB, "image/*": null}'

    settings = loaded(tmp_path, f"{BASE}uploads: {{inline_below: {{mime: {types}}}}}\n")

    assert settings.uploads.inline_below.mime == {"video/*": 0, "audio/wav": 2_000_000}


@pytest.mark.parametrize(
    ("text", "kept_s"), [("off", 0), ("7d", 604_800), ("until_deleted", math.inf), ("null", 604_800)]
)
def test_how_references_are_kept_is_read(tmp_path: Path, text: str, kept_s: float) -> None:
    keys = f"keep_copies: {text}, copies_cap: 1GB, delete_remote: after_request, quota: 2GB, give_up_after: 2m"

    settings = loaded(tmp_path, f"{BASE}uploads: {{{keys}}}\nstate: {{store: sqlite, dir: here}}\n")

    assert settings.uploads.policy == UploadPolicy(
        keep_copies_s=kept_s,
        copies_cap_bytes=10**9,
        delete_remote=DeleteRemote.AFTER_REQUEST,
        quota_bytes=2 * 10**9,
        give_up_after_s=120,
    )
    assert settings.state.dir == tmp_path / "here"


def test_safety_mime_and_pricing_are_read(tmp_path: Path) -> None:
    text = BASE.replace("  model: gemini", "  mime_mismatch: reject\n  model: gemini") + (
        "safety: {confinement: required, workers: 4, max: {file: 1GiB, duration_s: 2h}}\n"
        "pricing: {discount: 0.1, overrides: {gemini-x: {input: 1, output: 2, above_200k: {input: 3}}}}\n"
    )

    settings = loaded(tmp_path, text)

    assert settings.default.mime_mismatch is OnMimeMismatch.REJECT
    assert settings.safety.confinement is Confinement.REQUIRED
    assert settings.safety.max_file_bytes == 2**30
    assert settings.safety.max_duration_s == 7200.0
    assert settings.safety.max_pages == 1000
    assert settings.pricing.discount == Decimal("0.1")
    assert settings.pricing.overrides["gemini-x"].base.audio == 1
    assert settings.pricing.overrides["gemini-x"].long is not None


def test_without_accounts_there_is_the_developer_api(tmp_path: Path) -> None:
    account = loaded(tmp_path, "version: 1\ndefault: {model: m}\n").default.account

    assert (account.name, account.backend, account.api_key_env) == ("developer", Backend.DEVELOPER, "GEMINI_API_KEY")


def test_the_allow_list_looks_past_resource_paths() -> None:
    account = load(PACKAGED, environ={}).default.account
    endpoint = Endpoint(name="e", account=account, model="m", models=("gemini-2.5-flash",))

    assert endpoint.allows("models/gemini-2.5-flash")
    assert endpoint.allows("projects/p/locations/eu/publishers/google/models/gemini-2.5-flash@001")
    assert not endpoint.allows("gemini-2.5-flash-lite")


def test_an_overlay_stands_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("")

    assert loaded(tmp_path, BASE + "rules: {overlay: mine.toml}\n").rules_overlay == tmp_path / "mine.toml"
    assert "no such file" in only_mistake(tmp_path, BASE + "rules: {overlay: theirs.toml}\n")


class TestFinding:
    def test_the_named_file_comes_before_the_variable_and_both_before_the_folder(self, tmp_path: Path) -> None:
        for name in ("a.yaml", "b.yaml", "weighlock.yaml"):
            (tmp_path / name).write_text(BASE)
        environ = {"WEIGHLOCK_CONFIG": "b.yaml"}

        assert find(Path("a.yaml"), environ=environ, cwd=tmp_path) == tmp_path / "a.yaml"
        assert find(environ=environ, cwd=tmp_path) == tmp_path / "b.yaml"
        assert find(environ={}, cwd=tmp_path) == tmp_path / "weighlock.yaml"

    def test_the_config_folder_is_looked_into_before_the_packaged_file(self, tmp_path: Path) -> None:
        assert find(environ={}, cwd=tmp_path) == PACKAGED
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "weighlock.yaml").write_text(BASE)

        assert find(environ={}, cwd=tmp_path) == tmp_path / "config" / "weighlock.yaml"

    def test_a_named_file_that_is_missing_is_told_its_nearest_neighbour(self, tmp_path: Path) -> None:
        (tmp_path / "weighlock.yaml").write_text(BASE)

        with pytest.raises(ConfigError, match=r"wieghlock.yaml: no such file; did you mean .*weighlock.yaml\?"):
            load(Path("wieghlock.yaml"), environ={}, cwd=tmp_path)

    @pytest.mark.parametrize(
        ("content", "complaint"),
        [
            (b"- a\n- b\n", "must be a mapping"),
            (b"version: [1\n", "not YAML"),
            (b"\xff\xfe\x00bad", "not UTF-8"),
            (b"a\x00: 1", "not YAML"),
        ],
    )
    def test_a_file_that_is_no_settings_file_is_one_line(self, tmp_path: Path, content: bytes, complaint: str) -> None:
        (tmp_path / "weighlock.yaml").write_bytes(content)

        with pytest.raises(ConfigError, match=complaint) as refused:
            load(environ={}, cwd=tmp_path)
        assert "weighlock.yaml" in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_an_empty_file_is_told_what_the_least_one_holds(self, tmp_path: Path) -> None:
        problems = mistakes(tmp_path, "")

        assert [problem.partition("weighlock.yaml: ")[2] for problem in problems] == [
            "version: missing; write `version: 1`",
            "default.model: missing; name the model used when a request names none",
        ]

    def test_a_folder_in_the_files_place_is_said_to_be_one(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
            load(tmp_path, environ={})


class TestInclude:
    MAIN = "include: [endpoints.d/*.yaml]\n" + BASE

    def test_files_merge_and_inherit_like_the_main_one(self, tmp_path: Path) -> None:
        (tmp_path / "endpoints.d").mkdir()
        (tmp_path / "endpoints.d" / "agents.yaml").write_text(
            "version: 1\naccounts: {vertex_us: {backend: vertex, location: us}}\n"
            "endpoints: {browser: {account: vertex_us, limits: {prompt_tokens: 5}}}\n"
        )

        settings = loaded(tmp_path, self.MAIN)

        assert settings.endpoint("browser").account.location == "us"
        assert settings.endpoint("browser").limits.cost_usd == Decimal("0.25")
        assert settings.files[1].name == "agents.yaml"
        assert settings.origin["endpoints.browser.limits.prompt_tokens"].endswith("agents.yaml:3")

    def test_an_endpoint_defined_twice_names_both_files(self, tmp_path: Path) -> None:
        (tmp_path / "endpoints.d").mkdir()
        (tmp_path / "endpoints.d" / "support.yaml").write_text("endpoints:\n  bug_triage: {mode: observe}\n")

        problem = only_mistake(tmp_path, self.MAIN)

        assert "support.yaml:2: endpoints.bug_triage: defined twice; first at" in problem
        assert "weighlock.yaml:" in problem

    def test_safety_belongs_to_the_main_file(self, tmp_path: Path) -> None:
        (tmp_path / "endpoints.d").mkdir()
        (tmp_path / "endpoints.d" / "support.yaml").write_text("safety: {workers: 64}\n")

        assert "accounts and endpoints only" in only_mistake(tmp_path, self.MAIN)

    def test_a_wildcard_may_match_nothing_but_a_plain_name_may_not(self, tmp_path: Path) -> None:
        assert loaded(tmp_path, self.MAIN).endpoint("quiet").name == "quiet"
        assert "is no file name" in only_mistake(tmp_path, 'include: ["a\\0b"]\n' + BASE)
        assert "is no pattern" in only_mistake(tmp_path, "include: [/etc/*.yaml]\n" + BASE)
        assert "other.yaml: no such file" in only_mistake(tmp_path, "include: [other.yaml]\n" + BASE)


class TestMistakes:
    def test_an_unknown_key_is_told_its_line_its_path_and_the_nearest(self, tmp_path: Path) -> None:
        problem = only_mistake(tmp_path, BASE.replace("    mode: enforce", "    moed: enforce"))

        assert problem == (
            f"{tmp_path / 'weighlock.yaml'}:14: endpoints.bug_triage.moed: unknown key; did you mean 'mode'?"
        )

    @pytest.mark.parametrize(
        ("old", "new", "path", "nearest"),
        [
            ("accounts:", "acounts:", "acounts", "accounts"),
            ("prompt_tokens: 8000", "promt_tokens: 8000", "endpoints.bug_triage.limits.promt_tokens", "prompt_tokens"),
            ("{audio: 1600}", "{adio: 1600}", "endpoints.bug_triage.limits.tokens.adio", "audio"),
            ("day:", "dya:", "endpoints.bug_triage.windows.dya", "day"),
            ("project: acme", "projekt: acme", "accounts.vertex_eu.projekt", "project"),
            ("warn_at", "warnat", "default.windows.month.warnat", "warn_at"),
        ],
    )
    def test_the_nearest_key_is_found_at_every_depth(
        self, tmp_path: Path, old: str, new: str, path: str, nearest: str
    ) -> None:
        problems = mistakes(tmp_path, BASE.replace(old, new))

        assert any(f" {path}: unknown key; did you mean {nearest!r}?" in problem for problem in problems)

    def test_all_mistakes_are_told_at_once(self, tmp_path: Path) -> None:
        text = BASE.replace("mode: enforce", "mode: enforced").replace("bytes: 100MB", "bytes: 100XB") + "saftey: {}\n"

        problems = mistakes(tmp_path, text)

        assert [problem.split(": ")[1] for problem in problems] == [
            "default.limits.bytes",
            "endpoints.bug_triage.mode",
            "saftey",
        ]
        assert "'enforced' is not one of observe, enforce; did you mean 'enforce'?" in problems[1]

    def test_what_does_not_fit_together_is_told_beside_what_is_mistyped(self, tmp_path: Path) -> None:
        text = (
            BASE.replace("  account: developer\n", "  account: develper\n  models: [a]\n")
            .replace("mode: enforce", "mode: enforced")
            .replace("project: acme", "api_key_file: ~nobody-here/key")
        ) + "rules: {overlay: theirs.toml}\n"

        problems = mistakes(tmp_path, text)

        assert [problem.split(": ")[:2] for problem in problems] == [
            [f"{tmp_path / 'weighlock.yaml'}:{line}", key]
            for line, key in [
                (4, "accounts.vertex_eu.api_key_file"),
                (6, "default.account"),
                (8, "default.model"),
                (15, "endpoints.bug_triage.mode"),
                (20, "rules.overlay"),
            ]
        ]

    def test_mistakes_come_by_file_and_line_and_those_of_variables_last(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text("endpoints:\n  late: {account: nobody}\n  quiet: {}\n  later: {owner: 5}\n")
        text = "include: [a.yaml]\n" + BASE.replace("mode: enforce", "mode: enforced") + "saftey: {}\n"

        problems = mistakes(tmp_path, text, WEIGHLOCK_SAFETY__WORKERS="none")

        assert [problem.split(": ")[0].rpartition("/")[2] for problem in problems] == [
            "weighlock.yaml:15",
            "weighlock.yaml:20",
            "a.yaml:2",
            "a.yaml:3",
            "a.yaml:4",
            "WEIGHLOCK_SAFETY__WORKERS",
        ]

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("accounts:", "acounts:"),
            ("default:\n", "defualt:\n"),
            ("  model: gemini", "  modle: gemini"),
            ("  account: developer", "  acount: developer"),
            ("  account: developer", "  account: !env X"),
            ("default:\n", "default: 5\nlabels:\n"),
        ],
    )
    def test_what_comes_of_a_mistyped_key_is_no_second_mistake(self, tmp_path: Path, old: str, new: str) -> None:
        problems = mistakes(tmp_path, BASE.replace(old, new, 1))

        assert not [problem for problem in problems if "missing" in problem or "no account" in problem]

    def test_an_account_that_an_unreadable_file_may_define_is_not_missed(self, tmp_path: Path) -> None:
        text = "include: [accounts.yaml]\n" + BASE.replace("account: vertex_eu", "account: elsewhere")

        assert "accounts.yaml: no such file" in only_mistake(tmp_path, text)

    def test_a_key_given_twice_names_both_lines(self, tmp_path: Path) -> None:
        problem = only_mistake(tmp_path, BASE + "endpoints: {}\n")

        assert "weighlock.yaml:19: endpoints: given twice; first at" in problem
        assert problem.endswith("weighlock.yaml:11")

    @pytest.mark.parametrize(
        ("key", "said"),
        [
            ("keep_copies: sometimes", "not a duration"),
            ("delete_remote: never", "at_expiry, after_request"),
            ("quota: -1", "a size"),
            ("inline_below: {mime: {video: 1MB}}", "pattern"),
            ("inline_below: {mime: {text/*: 1MB}}", "pattern"),
            ("give_up_after: 0s", "greater than 0"),
        ],
    )
    def test_what_is_no_policy_of_uploads_is_told(self, tmp_path: Path, key: str, said: str) -> None:
        assert said in only_mistake(tmp_path, f"{BASE}uploads: {{{key}}}\n")

    @pytest.mark.parametrize("key", ["observe: {prometheus: true}"])
    def test_a_key_of_the_product_that_this_version_does_not_act_on_is_refused_as_such(
        self, tmp_path: Path, key: str
    ) -> None:
        problem = only_mistake(tmp_path, f"{BASE}{key}\n")

        assert "this version does not act on it; remove it" in problem

    @pytest.mark.parametrize(
        ("old", "new", "complaint"),
        [
            ("prompt_tokens: 8000", "prompt_tokens: many", "unable to parse string as an integer, not 'many'"),
            ("prompt_tokens: 8000", "prompt_tokens: true", "must be a number, not true or false"),
            ("prompt_tokens: 8000", "prompt_tokens: -1", "greater than or equal to 0"),
            ("prompt_tokens: 8000", "prompt_tokens: 8000.5", "integer"),
            ("cost_usd: 0.25", "cost_usd: .nan", "decimal"),
            ("warn_at: 0.8", "warn_at: 1.2", "less than or equal to 1"),
            ("Europe/Berlin", "Europe/Berln", "no time zone"),
            ("    mode: enforce", "    limits_: 1", "unknown key"),
            ("backend: developer,", "backend: developer, api_key_file: key.txt,", "once"),
            ("project: acme", "api_key_file: ~nobody-here/key", "no home directory is known for"),
            ("    mode: enforce", "    models: a", "list"),
            ("    mode: enforce", "    prepare_deadline_s: 0", "greater than 0"),
            ("    mode: enforce", "    prepare_deadline_s: .inf", "a duration such as 60s or 2h"),
            ("  quiet:", "  quiet: 5", "must be a mapping of keys, not 5"),
            ("  quiet:", "  Quiet:", "lower-case"),
            ("  quiet:", "  qui-et:", "lower-case"),
            ("  quiet:", "  default:", "what every endpoint starts from"),
            ("account: vertex_eu", "account: vertex_us", "no account 'vertex_us'; did you mean 'vertex_eu'?"),
            ("version: 1", "version: 2", "this version of weighlock reads `version: 1`"),
            ("backend: vertex,", "backend: developer,", "project and location belong to `backend: vertex`"),
            ("backend: vertex,", "backend: !env X,", "the tag !env is not read here"),
            ("  model: gemini-3.8-flash\n", "", "default.model: missing"),
            ("  account: developer\n", "", "default.account: missing: name one of developer, vertex_eu"),
            (
                "    mode: enforce",
                "    media: {image: {apply: always, resolution: lo}}",
                "'lo' is not one of low, medium, high, ultra_high; did you mean 'low'?",
            ),
            ("    mode: enforce", "    media: {video: {apply: always, fps: 30}}", "less than or equal to 24"),
            ("    mode: enforce", "    media: {video: {apply: always, clip: 9s-3s}}", "ends before it starts"),
            ("    mode: enforce", "    model: gemini-9\n    models: [gemini-8]", "'gemini-9' is not among models"),
        ],
    )
    def test_a_wrong_value_is_one_line_that_says_what_would_be_right(
        self, tmp_path: Path, old: str, new: str, complaint: str
    ) -> None:
        problem = only_mistake(tmp_path, BASE.replace(old, new))

        assert problem.startswith(str(tmp_path / "weighlock.yaml"))
        assert complaint in problem

    def test_what_an_endpoint_inherits_is_told_once_where_it_stands(self, tmp_path: Path) -> None:
        problem = only_mistake(tmp_path, BASE.replace("  account: developer\n", "  account: develper\n"))

        assert "weighlock.yaml:6: default.account: no account 'develper'; did you mean 'developer'?" in problem

    @pytest.mark.parametrize(
        "account", ["AIzaSyNotAKey", "{backend: developer, api_key_env: AIzaSyNotAKey}", "[AIzaSyNotAKey]"]
    )
    def test_a_key_written_into_the_file_is_refused_and_not_repeated(self, tmp_path: Path, account: str) -> None:
        problems = mistakes(tmp_path, f"version: 1\naccounts: {{developer: {account}}}\ndefault: {{model: m}}\n")

        assert "AIza" not in "".join(problems)

    def test_an_alias_that_contains_itself_is_refused(self, tmp_path: Path) -> None:
        assert any("alias" in problem for problem in mistakes(tmp_path, "a: &a {b: *a}\n"))


class TestEnvironment:
    def test_a_variable_overrides_one_value(self, tmp_path: Path) -> None:
        settings = loaded(tmp_path, BASE, WEIGHLOCK_ENDPOINTS__BUG_TRIAGE__LIMITS__COST_USD="80")

        assert settings.endpoint("bug_triage").limits.cost_usd == 80
        assert settings.endpoint("bug_triage").limits.prompt_tokens == 8000
        assert settings.endpoint("quiet").limits.cost_usd == Decimal("0.25")
        assert settings.origin["endpoints.bug_triage.limits.cost_usd"] == (
            "WEIGHLOCK_ENDPOINTS__BUG_TRIAGE__LIMITS__COST_USD"
        )

    def test_a_variable_may_give_a_window_the_file_lacks(self, tmp_path: Path) -> None:
        settings = loaded(tmp_path, BASE, WEIGHLOCK_ENDPOINTS__QUIET__WINDOWS__DAY__COST_USD="80")

        assert settings.endpoint("quiet").windows[Period.DAY].cost_usd == 80
        assert settings.endpoint("quiet").windows[Period.MONTH].cost_usd == 2000

    def test_a_list_is_written_in_brackets_and_null_takes_back(self, tmp_path: Path) -> None:
        settings = loaded(
            tmp_path, BASE, WEIGHLOCK_DEFAULT__MODELS="[gemini-3.8-flash, b]", WEIGHLOCK_DEFAULT__LIMITS__BYTES="null"
        )

        assert settings.endpoint("quiet").models == ("gemini-3.8-flash", "b")
        assert settings.endpoint("quiet").limits.bytes is None

    @pytest.mark.parametrize(
        ("variable", "complaint"),
        [
            ("WEIGHLOCK_ENDPOINT__QUIET__MODE", "did you mean WEIGHLOCK_ENDPOINTS?"),
            ("WEIGHLOCK_SAFTEY__WORKERS", "did you mean WEIGHLOCK_SAFETY?"),
            ("WEIGHLOCK_CONFG", "no such setting"),
            ("WEIGHLOCK_ENDPOINTS__QIET__MODE", "no endpoint 'qiet' in the files; did you mean 'quiet'?"),
            ("WEIGHLOCK_ENDPOINTS__QUIET", "names no single value"),
            ("WEIGHLOCK_ENDPOINTS__QUIET__MOED", "unknown key; did you mean 'mode'?"),
            ("WEIGHLOCK_SAFETY__WORKERS", "unable to parse string as an integer, not 'enforce'"),
        ],
    )
    def test_a_mistyped_variable_is_named(self, tmp_path: Path, variable: str, complaint: str) -> None:
        problem = only_mistake(tmp_path, BASE, **{variable: "enforce"})

        assert problem.startswith(f"{variable}: ")
        assert complaint in problem

    def test_a_variable_does_not_hide_a_mistake_of_the_file(self, tmp_path: Path) -> None:
        problem = only_mistake(tmp_path, BASE + "safety: 5\n", WEIGHLOCK_SAFETY__MAX__PAGES="5")

        assert "weighlock.yaml:19: safety: must be a mapping of keys, not 5" in problem

    def test_a_variable_that_holds_a_key_is_no_setting(self, tmp_path: Path) -> None:
        text = BASE.replace("GEMINI_API_KEY", "WEIGHLOCK_KEY")

        assert loaded(tmp_path, text, WEIGHLOCK_KEY="secret", OTHER="x").default.account.api_key_env == "WEIGHLOCK_KEY"


class TestOrigin:
    def test_every_value_is_traced_to_its_line_its_default_or_the_program(self, tmp_path: Path) -> None:
        origin = loaded(tmp_path, BASE).origin
        file = tmp_path / "weighlock.yaml"

        assert origin["endpoints.bug_triage.limits.prompt_tokens"] == f"{file}:15"
        assert origin["endpoints.bug_triage.limits.cost_usd"] == f"{file}:8 (default)"
        assert origin["endpoints.bug_triage.windows.month.cost_usd"] == f"{file}:10 (default)"
        assert origin["endpoints.bug_triage.on_unknown_price"] == "built in"
        assert origin["safety.workers"] == "built in"


def test_how_films_and_sound_are_encoded_is_the_operator_s_within_what_is_honoured(tmp_path: Path) -> None:
    chosen = "encoding: {video: {preset: fast, crf: 31}, audio: {bits_per_channel: 32000}}\n"
    wrong = "encoding: {video: {preset: placebo, crf: 52}, audio: {bits_per_channel: 1000}}\n"

    assert loaded(tmp_path, BASE).encoding == Encoding()
    assert loaded(tmp_path, BASE + chosen).encoding == Encoding(preset="fast", crf=31, sound_bits_per_channel=32_000)
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, BASE + wrong)
    for said in ("not one of ultrafast, superfast, veryfast", "equal to 51, not 52", "equal to 32000, not 1000"):
        assert said in str(caught.value)
