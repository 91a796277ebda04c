"""Settings written by accident or in malice: each is one short line of complaint, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from weighlock.cli.config import config
from weighlock.errors import ConfigError
from weighlock.settings import Settings, dump, load

BASE = "version: 1\ndefault: {model: gemini-2.5-flash}\n"
NUMBERS = {
    "tokens": "default: {{model: m, limits: {{prompt_tokens: {0}}}}}",
    "tokens of a modality": "default: {{model: m, limits: {{tokens: {{image: {0}}}}}}}",
    "cost": "default: {{model: m, limits: {{cost_usd: {0}}}}}",
    "bytes": "default: {{model: m, limits: {{bytes: {0}}}}}",
    "parts": "default: {{model: m, limits: {{media_parts: {0}}}}}",
    "answer": "default: {{model: m, output_tokens: {{expected: {0}}}}}",
    "warning": "default: {{model: m, windows: {{day: {{warn_at: {0}}}}}}}",
    "deadline": "default: {{model: m, prepare_deadline_s: {0}}}",
    "rate of frames": "default: {{model: m, media: {{video: {{apply: always, fps: {0}}}}}}}",
    "workers": "safety: {{workers: {0}}}\ndefault: {{model: m}}",
    "file": "safety: {{max: {{file: {0}}}}}\ndefault: {{model: m}}",
    "pixels": "safety: {{max: {{pixels: {0}}}}}\ndefault: {{model: m}}",
    "duration": "safety: {{max: {{duration_s: {0}}}}}\ndefault: {{model: m}}",
    "pages": "safety: {{max: {{pages: {0}}}}}\ndefault: {{model: m}}",
    "frames": "safety: {{max: {{frames: {0}}}}}\ndefault: {{model: m}}",
    "discount": "pricing: {{discount: {0}}}\ndefault: {{model: m}}",
    "price": "pricing: {{overrides: {{m: {{input: {0}}}}}}}\ndefault: {{model: m}}",
    "version": "version: {0}\ndefault: {{model: m}}",
    "model": "default: {{model: {0}}}",
}
ENDLESS = ("1e999999999", "1e-999999999", "0e999999999", "1e99999999999999999999", "1e6144", "9" * 400, "9" * 5_000)


def loaded(folder: Path, text: str, **environ: str) -> Settings:
    (folder / "weighlock.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    return load(cwd=folder, environ=environ)


def mistakes(folder: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        loaded(folder, text, **environ)
    problems: list[str] = refused.value.figures["problems"]
    for problem in problems:
        assert problem.isprintable()
        assert len(problem.replace(str(folder), "")) < 500
    return problems


class TestNumbers:
    @pytest.mark.parametrize("number", ENDLESS, ids=lambda number: number[:24])
    @pytest.mark.parametrize("key", NUMBERS)
    def test_a_number_too_long_to_spell_out_is_refused_at_every_key(
        self, tmp_path: Path, key: str, number: str
    ) -> None:
        text = NUMBERS[key].format(number)
        (problem,) = mistakes(tmp_path, text if key == "version" else f"version: 1\n{text}")

        assert "number" in problem

    @pytest.mark.parametrize("number", ENDLESS, ids=lambda number: number[:24])
    @pytest.mark.parametrize("key", [key for key in NUMBERS if key not in {"version", "model"}])
    def test_and_so_is_one_in_quotes(self, tmp_path: Path, key: str, number: str) -> None:
        assert mistakes(tmp_path, "version: 1\n" + NUMBERS[key].format(f'"{number}"'))

    @pytest.mark.parametrize("number", ENDLESS, ids=lambda number: number[:24])
    @pytest.mark.parametrize("value", ["{0}", "[{0}]", "{{a: {0}}}"])
    def test_and_so_is_one_in_a_variable(self, tmp_path: Path, value: str, number: str) -> None:
        variable = "WEIGHLOCK_DEFAULT__LIMITS__PROMPT_TOKENS"

        assert all(
            problem.startswith(variable) for problem in mistakes(tmp_path, BASE, **{variable: value.format(number)})
        )

    @pytest.mark.parametrize(
        "clip", [f"last {'9' * 400}s", f"0s-{'9' * 400}s", f"first {'9' * 17}d", f"last 1{'0' * 18}s"]
    )
    def test_a_clip_is_no_longer_than_can_be_reckoned_with(self, tmp_path: Path, clip: str) -> None:
        text = f"version: 1\ndefault: {{model: m, media: {{video: {{apply: always, clip: {clip}}}}}}}\n"

        assert "number of at most 18 digits" in "".join(mistakes(tmp_path, text))

    @pytest.mark.parametrize("size", [f"{'9' * 400}TB", f"{'9' * 16}TB"])
    def test_nor_is_a_size(self, tmp_path: Path, size: str) -> None:
        text = f"version: 1\ndefault: {{model: m, limits: {{bytes: {size}}}}}\n"

        assert "number of at most 18 digits" in "".join(mistakes(tmp_path, text))

    def test_the_largest_and_the_smallest_number_are_read_shown_and_read_again(self, tmp_path: Path) -> None:
        largest = "9" * 18
        limits = f"prompt_tokens: {largest}, cost_usd: 1e-18, bytes: {largest}"
        settings = loaded(tmp_path, f"version: 1\ndefault: {{model: m, limits: {{{limits}}}}}\n")

        assert settings.default.limits.prompt_tokens == int(largest)
        assert loaded(tmp_path, dump(settings)) == settings


class TestShape:
    def test_aliases_cannot_multiply(self, tmp_path: Path) -> None:
        rows = [f"x{at + 1}: &x{at + 1} [{', '.join([f'*x{at}'] * 10)}]" for at in range(12)]
        (problem,) = mistakes(tmp_path, "\n".join([BASE + "x0: &x0 [1, 1]", *rows]))

        assert "more than 50,000 values, those that aliases repeat included" in problem

    def test_aliases_cannot_stack(self, tmp_path: Path) -> None:
        rows = [f"x{at + 1}: &x{at + 1} [{'[' * 20}*x{at}{']' * 20}]" for at in range(5)]
        (problem,) = mistakes(tmp_path, "\n".join([BASE + "x0: &x0 [1]", *rows]))

        assert "aliases nested more than 50 levels deep" in problem

    @pytest.mark.parametrize("text", ["a: &a [*a]\n", "&a\nx: *a\n", "? &a {b: *a}\n: 1\n", "a: &a {b: [{c: *a}]}\n"])
    def test_an_alias_cannot_stand_for_what_contains_it(self, tmp_path: Path, text: str) -> None:
        (problem,) = mistakes(tmp_path, text)

        assert "an alias stands for what contains it" in problem

    def test_an_alias_used_as_it_is_meant_is_read(self, tmp_path: Path) -> None:
        text = BASE + "endpoints: {one: {limits: &ours {prompt_tokens: 5}}, two: {limits: *ours}}\n"

        assert loaded(tmp_path, text).endpoint("two").limits.prompt_tokens == 5

    @pytest.mark.parametrize("depth", [60, 500, 1_000, 20_000])
    @pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? "])
    def test_nesting_ends(self, tmp_path: Path, opening: str, depth: int) -> None:
        (problem,) = mistakes(tmp_path, f"{BASE}a:\n  {opening * depth}")

        assert "nested more than 50 levels deep" in problem

    @pytest.mark.parametrize("value", ["[" * 2_000, "{a: " * 2_000, "[&a [*a]]", "{b: &b {c: *b}}"])
    @pytest.mark.parametrize("variable", ["WEIGHLOCK_DEFAULT", "WEIGHLOCK_DEFAULT__LIMITS", "WEIGHLOCK_DEFAULT__MODEL"])
    def test_and_it_ends_in_a_variable(self, tmp_path: Path, variable: str, value: str) -> None:
        (problem,) = mistakes(tmp_path, BASE, **{variable: value})

        assert problem.startswith(f"{variable}: ")
        assert "nested more than 50" in problem or "an alias stands for what contains it" in problem

    def test_a_list_of_too_many_values_is_refused_before_it_is_read_to_its_end(self, tmp_path: Path) -> None:
        (problem,) = mistakes(tmp_path, f"{BASE}a: [{'x,' * 60_000}]")

        assert "more than 50,000 values" in problem

    def test_more_mistakes_than_anybody_reads_are_counted(self, tmp_path: Path) -> None:
        problems = mistakes(tmp_path, BASE + "".join(f"key{at}: 1\n" for at in range(2_000)))

        assert 100 <= len(problems) <= 101

    @pytest.mark.parametrize("text", ['"\\uD800": 1\n', 'owner: "\\uD800"\n', '? "\\uDFFF"\n: {a: 1}\n'])
    def test_half_a_character_is_no_text(self, tmp_path: Path, text: str) -> None:
        assert mistakes(tmp_path, BASE + text)

    @pytest.mark.parametrize("tag", ["!!int abc", "!!float abc", "!!str {a: 1}", "!!int [1]", "!!binary aGk=", "!x 1"])
    def test_a_tag_that_does_not_fit_its_value_is_told(self, tmp_path: Path, tag: str) -> None:
        assert mistakes(tmp_path, f"version: 1\ndefault: {{model: m, owner: {tag}}}\n")


class TestFiles:
    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
    @pytest.mark.parametrize("named_in", ["load", "include", "glob", "overlay"])
    def test_a_fifo_is_not_waited_for(self, tmp_path: Path, named_in: str) -> None:
        os.mkfifo(tmp_path / "fifo.yaml")
        texts = {"include": "include: [fifo.yaml]\n", "glob": "include: [f*.yaml]\n"}
        text = BASE + texts.get(named_in, "rules: {overlay: fifo.yaml}\n")

        if named_in == "load":
            with pytest.raises(ConfigError, match=r"fifo.yaml: cannot be read: no regular file"):
                load(tmp_path / "fifo.yaml", environ={})
        else:
            assert "file" in "".join(mistakes(tmp_path, text))

    @pytest.mark.skipif(not Path("/dev/zero").exists(), reason="this system has no /dev/zero")
    def test_a_device_is_not_read(self) -> None:
        with pytest.raises(ConfigError, match="no regular file"):
            load(Path("/dev/zero"), environ={})

    def test_a_file_too_long_is_refused(self, tmp_path: Path) -> None:
        (problem,) = mistakes(tmp_path, BASE + "#" * 1_000_000)

        assert "cannot be read: more than 1,000,000 characters" in problem

    def test_files_that_are_too_long_together_are_refused(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            (tmp_path / f"part-{name}.yaml").write_text("#" * 600_000)

        (problem,) = mistakes(tmp_path, BASE + "include: [part-a.yaml, part-b.yaml]\n")
        assert problem.startswith(str(tmp_path / "part-b.yaml"))

    @pytest.mark.parametrize(
        "pattern",
        ["../../**/*.yaml", "**", "a/**/b", "*/*/*/x.yaml", "a/" * 3_000 + "*", "*/" * 3_000, "a" * 5_000],
        ids=lambda pattern: pattern[:16],
    )
    def test_no_pattern_walks_the_disk(self, tmp_path: Path, pattern: str) -> None:
        assert any("include" in problem or "cannot be" in problem for problem in self.included(tmp_path, pattern))

    def test_a_pattern_stands_for_a_hundred_files_at_most(self, tmp_path: Path) -> None:
        for at in range(101):
            (tmp_path / f"part-{at}.yaml").write_text("")

        assert "more than 100 files" in "".join(self.included(tmp_path, "part-*.yaml"))

    def test_a_folder_of_teams_is_included(self, tmp_path: Path) -> None:
        (tmp_path / "teams" / "blue").mkdir(parents=True)
        (tmp_path / "teams" / "blue" / "one.yaml").write_text("endpoints: {one: {}}\n")

        assert loaded(tmp_path, BASE + "include: [teams/*/*.yaml]\n").endpoint("one").name == "one"

    @staticmethod
    def included(folder: Path, pattern: str) -> list[str]:
        return mistakes(folder, f'{BASE}include: ["{pattern}"]\n')


class TestVariables:
    @pytest.mark.parametrize(
        "variables",
        [
            {"WEIGHLOCK_DEFAULT__MODEL__X": "1"},
            {"WEIGHLOCK_DEFAULT__MODEL__X__Y": "1"},
            {"WEIGHLOCK_DEFAULT__OWNER__X": "1"},
            {"WEIGHLOCK_DEFAULT__MODELS__0": "m"},
            {"WEIGHLOCK_SAFETY__WORKERS__X": "1"},
            {"WEIGHLOCK_DEFAULT__LABELS__TEAM__X": "1"},
            {"WEIGHLOCK_RULES__OVERLAY__X": "1"},
            {"WEIGHLOCK_DEFAULT__MODEL": "m", "WEIGHLOCK_DEFAULT__MODEL__X": "1"},
            {"WEIGHLOCK_DEFAULT__LIMITS": "null", "WEIGHLOCK_DEFAULT__LIMITS__PROMPT_TOKENS": "1"},
        ],
        ids=" ".join,
    )
    def test_one_below_a_single_value_is_told(self, tmp_path: Path, variables: dict[str, str]) -> None:
        (problem,) = mistakes(tmp_path, BASE, **variables)

        assert problem.startswith(f"{list(variables)[-1]}: ")
        assert "single value" in problem

    def test_one_below_a_mapping_adds_to_it(self, tmp_path: Path) -> None:
        settings = loaded(
            tmp_path,
            BASE,
            WEIGHLOCK_DEFAULT__LIMITS="{prompt_tokens: 5, cost_usd: 0.1}",
            WEIGHLOCK_DEFAULT__LIMITS__COST_USD="0.2",
            WEIGHLOCK_DEFAULT__LABELS__TEAM="blue",
        )

        assert settings.default.limits.prompt_tokens == 5
        assert str(settings.default.limits.cost_usd) == "0.2"
        assert settings.default.labels == {"team": "blue"}

    @pytest.mark.parametrize("text", ["{cost_usd: 1, cost_usd: 2}", "{cost_usd: !x 1}", "{[a]: 1}"])
    def test_a_mistake_within_one_is_told(self, tmp_path: Path, text: str) -> None:
        (problem,) = mistakes(tmp_path, BASE, WEIGHLOCK_DEFAULT__LIMITS=text)

        assert problem.startswith("WEIGHLOCK_DEFAULT__LIMITS: ")

    @pytest.mark.parametrize("home", ["[K]", "{K: 1}", "[]", "5", "true"])
    def test_a_keys_home_that_is_no_name_is_told_beside_any_variable(self, tmp_path: Path, home: str) -> None:
        text = f"version: 1\naccounts: {{a: {{backend: vertex, api_key_env: {home}}}}}\ndefault: {{model: m}}\n"

        assert "accounts.a.api_key_env" in "".join(mistakes(tmp_path, text, WEIGHLOCK_DEFAULT__MODEL="m"))

    @pytest.mark.parametrize(
        ("name", "text"),
        [("WEIGHLOCK_DEFAULT__MODEL", "m\udcff"), ("WEIGHLOCK_DEFAULT__M\udcff", "m"), ("WEIGHLOCK_\x1b[31m", "x")],
    )
    def test_bytes_that_are_no_text_are_told(self, tmp_path: Path, name: str, text: str) -> None:
        assert mistakes(tmp_path, BASE, **{name: text})


KEY = "AIzaSyD-SECRETSECRETSECRETSECRET0123456"
KEYS = [KEY, "AQ.Ab8SECRETSECRETSECRET0123456789", "sk-proj-SECRETSECRETSECRET0123", "ya29.a0SECRETSECRETSECRET012"]
PLACES = """\
accounts: {a: {backend: developer, api_key_env: KEY}}
accounts: {a: {backend: developer, api_key_file: KEY}}
accounts: {a: {backend: developer, api_key: KEY}}
accounts: {a: {backend: vertex, project: KEY}}
accounts: {a: {backend: KEY}}
accounts: {a: KEY}
accounts: {KEY: {backend: developer}}
accounts: {a: {KEY: 1}}
accounts: [KEY]
accounts: KEY
accounts: {a: !KEY x}
accounts: {a: *KEY }
api_key: KEY
KEY: 1
KEY
default: {account: KEY, model: m}
default: {model: KEY}
default: {model: m, models: [KEY]}
default: {model: m, mode: KEY}
default: {model: m, owner: KEY}
default: {model: m, labels: {KEY: x}}
default: {model: m, labels: {x: KEY}}
default: {model: m, media: {video: {apply: always, clip: KEY}}}
default: {model: m, windows: {day: {timezone: KEY}}}
default: KEY
endpoints: {KEY: {}}
rules: {overlay: KEY}
include: [KEY]
include: ["KEY/*"]
include: KEY
safety: {workers: KEY}
safety: {max: {file: KEY}}
pricing: {discount: KEY}
pricing: {overrides: {KEY: {input: 1}}}
""".splitlines()


class TestKeys:
    @pytest.mark.parametrize("key", KEYS)
    @pytest.mark.parametrize("place", PLACES)
    def test_one_pasted_anywhere_is_refused_and_not_repeated(self, tmp_path: Path, place: str, key: str) -> None:
        default = "" if "default" in place or place == "KEY" else "default: {model: m}\n"
        problems = mistakes(tmp_path, f"version: 1\n{default}{place.replace('KEY', key)}\n")

        assert "SECRET" not in "".join(problems).upper()

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("WEIGHLOCK_ACCOUNTS__A__API_KEY_ENV", KEY),
            ("WEIGHLOCK_ACCOUNTS__A__API_KEY_FILE", KEY),
            ("WEIGHLOCK_ACCOUNTS__A", KEY),
            ("WEIGHLOCK_ACCOUNTS", KEY),
            ("WEIGHLOCK_API_KEY", KEY),
            ("WEIGHLOCK_DEFAULT__MODEL", KEY),
            ("WEIGHLOCK_DEFAULT__LABELS", f"{{x: {KEY}}}"),
            (f"WEIGHLOCK_{KEY.upper()}", "x"),
            (f"WEIGHLOCK_ACCOUNTS__{KEY}", "x"),
            (f"WEIGHLOCK_DEFAULT__{KEY}", "x"),
            ("WEIGHLOCK_CONFIG", KEY),
        ],
    )
    def test_nor_is_one_in_a_variable(self, tmp_path: Path, name: str, text: str) -> None:
        base = "version: 1\naccounts: {a: {backend: developer, api_key_env: K}}\ndefault: {model: m}\n"

        assert "SECRET" not in "".join(mistakes(tmp_path, base, **{name: text})).upper()

    @pytest.mark.parametrize("home", ["api_key_env: AIZASECRETSECRETSECRET_0123456", f"api_key_file: {'0a1B' * 10}"])
    def test_a_keys_home_that_looks_like_one_is_refused(self, tmp_path: Path, home: str) -> None:
        text = f"version: 1\naccounts: {{a: {{backend: developer, {home}}}}}\ndefault: {{model: m}}\n"
        (problem,) = mistakes(tmp_path, text)

        assert home.partition(" ")[2] not in problem

    def test_a_file_that_is_there_may_be_called_like_a_key(self, tmp_path: Path) -> None:
        name = "0a1B" * 10
        (tmp_path / name).write_text("x")
        text = f"version: 1\naccounts: {{a: {{backend: developer, api_key_file: {name}}}}}\ndefault: {{model: m}}\n"

        assert loaded(tmp_path, text).accounts["a"].api_key_file == tmp_path / name

    @pytest.mark.parametrize(
        "model", ["gemini-2.5-flash-native-audio-preview-12-2025", "gemini-2.5-flash-preview-native-audio-dialog-001"]
    )
    def test_a_long_name_is_no_key(self, tmp_path: Path, model: str) -> None:
        text = f"version: 1\ndefault: {{model: {model}, models: [gemini-3]}}\n"

        assert model in "".join(mistakes(tmp_path, text))


class TestTerminal:
    @pytest.mark.parametrize(
        "text",
        [
            'default: {model: m, "\\e[31m": 1}\n',
            'default: {model: m, mode: "\\e[31m"}\n',
            'default: {model: m}\n"\\e]0;x\\a": 1\n',
            'default: {model: m}\naccounts: {"\\e[31m": {backend: developer}, b: {backend: developer}}\n',
            'default: {model: m}\ninclude: ["\\a.yaml"]\n',
            'default: {model: m}\ninclude: ["\\e[31m*\\e/**"]\n',
            'default: {model: m}\nrules: {overlay: "\\e[31m"}\n',
            'default: {model: "\\e[31m", models: [x]}\n',
        ],
    )
    def test_a_complaint_holds_no_control_character(self, tmp_path: Path, text: str) -> None:
        assert mistakes(tmp_path, "version: 1\n" + text)

    @pytest.mark.parametrize("arguments", [("check", "\x1b[31m"), ("init", "no/\x1b[31m"), ("init", "\x1b[31m.yaml")])
    def test_names_given_to_the_command_are_printed_without_any(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
    ) -> None:
        monkeypatch.chdir(tmp_path)

        assert "\x1b" not in CliRunner().invoke(config, arguments).output

    def test_so_are_values_that_may_hold_some(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        path = tmp_path / "\x1b[31m.yaml"
        path.write_text('version: 1\ndefault: {model: "m\\e[31m\\u202e", labels: {"\\u009b": "\\a"}}\n')

        for arguments in (("check",), ("show", "--config"), ("show", "--origin", "--config")):
            result = CliRunner().invoke(config, [*arguments, str(path)])

            assert result.exit_code == 0
            assert result.output.replace("\n", "").isprintable()

    def test_long_names_and_values_are_cut(self, tmp_path: Path) -> None:
        long = "k" * 100_000
        text = f"version: 1\ndefault: {{model: m, {long[:1000]}: 1, mode: {long}, account: {long}}}\n"

        assert len(mistakes(tmp_path, text)) == 3
