"""Every command that attest prints can be typed as it stands, and sees what it stands beside."""

import html
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import kernels
import pytest

import attest

MODULE = '''
    """Wrong without dlpack, refuses most, states what doesn't hold."""
    import numpy as np

    def attention(q, k, v, *, is_causal=False, scale=None):
        assert not isinstance(q, np.ndarray), "tensors=dlpack was lost"
        q, k, v = (np.from_dlpack(t) for t in (q, k, v))
        assert q.dtype != np.float64, "refuses was lost"
        scores = (q.astype("f4") @ k.astype("f4").swapaxes(-1, -2)) * np.float32(q.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            scores[..., np.arange(scores.shape[-1]) >= np.arange(scores.shape[-2])[:, None]] = -np.inf
        weights = np.exp(scores - np.maximum(scores.max(-1, keepdims=True, initial=-3e38), -3e38))
        return (weights @ v.astype("f4") / weights.sum(-1, keepdims=True)).astype(q.dtype)
'''
STATED = [
    "--name", "an_own_name", "--tensors", "dlpack", "--keywords", "causal=is_causal", "--refuses",
    "grouped heads,dtype=f64,dtype=bf16,dtype=f16,batch,strides", "--arithmetic", "accumulator=f64,exp_ulps=0.5",
]  # fmt: skip
RUN = ["--threads", "2", "--timeout", "33"]
COMMAND = re.compile(r"(?:python -m )?attest (?:check|fuzz|list|shrink|explain) (?:'[^']*'|[^\n<>')])*")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "python").symlink_to(sys.executable)
    return tmp_path


def shell(command, folder):
    """As a user types it there."""
    command = command.replace("python -m attest", f"{sys.executable} -m attest", 1)
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def attest_says(*words, folder):
    done = subprocess.run([sys.executable, "-m", "attest", *words], cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def commands_in(text):
    """Of what people see: the data of a page's script are put together there."""
    seen = html.unescape(re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL))
    return [command.split(" asks only ")[0].strip() for command in COMMAND.findall(seen)]


def test_every_printed_command_repeats_what_it_stands_beside(folder):
    object_ = ["--python", "mine.py:attention"]
    said = [*object_, *STATED, *RUN]
    places = {}
    lines = ["seq=9 dim=4 causal", "seq=5 dim=8 causal scale=2"]
    code, places["check"] = attest_says("check", *lines, *said, "--junit", "a.xml", "--json", "a.jsonl", "--summary",
                                        "a.md", "--annotations", "github", folder=folder)  # fmt: skip
    assert code == 1, places["check"]
    code, places["suite"] = attest_says("check", "--suite", "smoke", *said, "--no-shrink", folder=folder)
    assert code == 1 and "refused most of it" in places["suite"], places["suite"]
    code, places["fuzz"] = attest_says("fuzz", "--count", "60", "--seed", "1", *said, folder=folder)
    assert code == 1, places["fuzz"]
    code, places["shrink"] = attest_says("shrink", lines[1], *said, folder=folder)
    assert code == 1, places["shrink"]
    code, _ = attest_says("report", "a.jsonl", "--out", "a.html", folder=folder)
    assert code == 0
    for name in ("a.xml", "a.md", "a.html"):
        places[name] = (folder / name).read_text()
    places["a.jsonl"] = "\n".join(
        told["repro"] for told in map(json.loads, (folder / "a.jsonl").read_text().splitlines()) if "repro" in told
    )
    run = set()
    for place, text in places.items():
        found = commands_in(text)
        assert found, f"{place} prints no command: {text[:2000]}"
        for command in found:
            if command in run or "--json a.jsonl" in command:  # the run's own, of which the page tells
                continue
            run.add(command)
            for word in ("--python mine.py:attention", "--tensors dlpack", "--keywords causal=is_causal",
                         "--refuses 'grouped heads,", "--arithmetic accumulator=f64,exp_ulps=0.5", "--threads 2",
                         "--timeout 33", "--name an_own_name"):  # fmt: skip
                assert word in command, f"{place} lost {word}: {command}"
            code, told = shell(command + (" --time 1s" if " fuzz " in command else ""), folder)
            assert code == 1, f"{place}: {command}\n{told}"
            assert "was lost" not in told, told
    assert {command.split(" attest ")[1].split()[0] for command in run} >= {"check", "fuzz"}, run


def test_a_complaint_of_a_probe_names_the_plug_in(folder):
    (folder / "right.py").write_text(
        f"import sys\nsys.path.insert(0, {str(Path(kernels.__file__).parent)!r})\nimport kernels\nimport numpy as np\n"
        "def attention(q, k, v, *, scale=None):\n    assert not isinstance(q, np.ndarray)\n"
        "    return kernels.attention(*(np.from_dlpack(t) for t in (q, k, v)), scale=scale)\n"
    )
    said = ["--python", "right.py:attention", "--name", "an_own_name", "--tensors", "dlpack", "--refuses",
            "dtype=bf16,grouped heads", "--arithmetic", "exp_ulps=5000", *RUN]  # fmt: skip
    code, text = attest_says("check", "--suite", "smoke", *said, "--write-refusals", "lists", folder=folder)
    found = [command for command in commands_in(text) if " list arithmetic " in command]
    assert code == 1 and found, text
    for command in found:
        assert "'dtype=bf16,grouped heads'" in command and "--tensors dlpack" in command, command
        code, told = shell(command, folder)
        assert code == 1 and re.search(r"exp_ulps, f32 +5000 ulps +TOO WIDE", told), (command, told)


def test_what_python_states_stands_in_the_commands_that_it_prints(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    import mine

    stated = dict(
        name="an_own_name", tensors="dlpack", keywords={"causal": "is_causal"}, refuses=["grouped heads", "dtype=f64"],
        arithmetic={"exp_ulps": 4.5, "base2": False}, threads=2,
    )  # fmt: skip
    results = attest.check(mine.attention, ["seq=9 dim=4 causal", "seq=5 dim=4"], **stated)
    assert not results.ok
    commands = [*commands_in(str(results)), results.failures[0].repro, results.shrunk[0].repro]
    assert len(commands) > 3
    for command in commands:
        for word in ("--threads 2", "--tensors dlpack", "--refuses 'grouped heads,dtype=f64'", "--name an_own_name",
                     "exp_ulps=4.5"):  # fmt: skip
            assert word in command, command
        code, told = shell(command, folder)
        assert code == 1 and "was lost" not in told, (command, told)


def test_what_no_process_can_import_is_repeated_in_python():
    def attention(q, k, v):
        return kernels.attention(q, k, v) * 2

    results = attest.check(attention, "seq=4 dim=4", threads=2, refuses=["grouped heads"])
    line = results.failures[0].repro
    again = eval(line, {"attest": attest, "attention": attention})
    assert not again.ok and again[0].case == results[0].case
    assert "threads=2" in line and "grouped heads" in line


def test_the_command_line_states_what_python_states(folder):
    for option, value, part in (
        ("--tensors", "jax", "numpy"),
        ("--tensors", "dlpak", "dlpack"),
        ("--arithmetic", "exp_ulp=2", "exp_ulps"),
        ("--arithmetic", "accumulator=f31", "f31"),
        ("--arithmetic", "accumulator", "accumulator"),
        ("--conventions", "empty_rows=nan", "empty_row"),
        ("--keywords", "kausal=is_causal", "causal"),
        ("--refuses", "groupd heads", "grouped heads"),
    ):
        code, text = attest_says("check", "seq=4 dim=4", "--python", "mine.py:attention", option, value, folder=folder)
        assert code == 2 and text.count("\n") == 1 and part in text, (option, value, code, text)
    code, text = attest_says("check", "seq=4 dim=4", "--tensors", "dlpack", folder=folder)
    assert code == 2 and "--python" in text, text
    for word in ("numpy:from_dlpack", "numpy.from_dlpack"):
        (folder / "plain.py").write_text((folder / "mine.py").read_text().replace("not isinstance", "isinstance"))
        code, text = attest_says("check", "seq=4 dim=4", "--python", "plain.py:attention", "--tensors", word, folder=folder)
        assert code == 0, text


def test_the_same_mistakes_are_a_users_error_in_python():
    for stated, part in (({"tensors": "jax"}, "numpy"), ({"arithmetic": {"exp_ulp": 1}}, "exp_ulps"),
                         ({"arithmetic": {"base2": 1}}, "base2"), ({"arithmetic": {"exp_ulps": -1}}, "-1"),
                         ({"conventions": {"diagonal": "left"}}, "diagonal")):  # fmt: skip
        for isolate in (False, True):
            with pytest.raises(attest.UserError, match=part):
                attest.check(kernels.attention, "seq=4 dim=4", isolate=isolate, **stated)


def test_what_a_method_misstates_for_some_calls_is_a_users_error():
    class Mine(kernels.Exact):
        def arithmetic(self, call):
            return {"exp_ulp": 1} if call.causal else {}

    with pytest.raises(attest.UserError, match="exp_ulps"):
        attest.check(Mine(), ["seq=4 dim=4", "seq=4 dim=4 causal"])


def raise_(error):
    raise error


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("0 active drivers ([]). There should only be one."),
        RuntimeError("Found no NVIDIA driver on your system."),
        AssertionError("Torch not compiled with CUDA enabled"),
        RuntimeError("clGetPlatformIDs failed: PLATFORM_NOT_FOUND_KHR"),
        ModuleNotFoundError("No module named 'pyopencl'"),
        OSError("libcuda.so.1: cannot open shared object file: No such file or directory"),
    ],
)
def test_a_driver_that_is_not_there_is_no_wrong_kernel(error):
    for function in (attest.check, attest.explain, attest.shrink):
        with pytest.raises(attest.UserError, match=re.escape(str(error)[:12])):
            function(lambda q, k, v: raise_(error), "seq=4 dim=4")


def test_a_driver_that_is_not_there_ends_the_command(folder):
    (folder / "gone.py").write_text("def attention(q, k, v):\n    raise RuntimeError('0 active drivers ([])')\n")
    for words in (["check"], ["check", "--no-isolate"], ["explain"], ["shrink"]):
        done = subprocess.run([sys.executable, "-m", "attest", words[0], "seq=4 dim=4", "--python", "gone.py:attention",
                               *words[1:]], cwd=folder, capture_output=True, text=True)  # fmt: skip
        said = done.stdout, done.stderr
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and "0 active drivers" in done.stderr, (words, said)
        # Before its first case `check` tells the limits of processes; nothing else stands there.
        limits = r"processes of their own: [^\n]*\n" if words == ["check"] else ""
        assert re.fullmatch(limits, done.stdout), (words, said)
    code, text = attest_says("list", "arithmetic", "--python", "gone.py:attention", folder=folder)
    assert code == 2 and "0 active drivers" in text, text
    code, text = attest_says("fuzz", "--count", "5", "--python", "gone.py:attention", folder=folder)
    assert code == 2 and "0 active drivers" in text, text


def test_an_object_that_is_not_named(folder):
    (folder / "two.py").write_text("import attest\ndef flash(q, k, v): return q\nclass Kernel(attest.Backend): pass\n")
    for words in ("two", "two.py", "two:", "two.py:"):
        code, text = attest_says("check", "seq=4 dim=4", "--python", words, folder=folder)
        assert code == 2 and text.count("\n") == 1 and ":flash" in text and ":Kernel" in text, text
    code, text = attest_says("check", "seq=4 dim=4", "--python", "two:flahs", folder=folder)
    assert code == 2 and "nearest: flash" in text, text
    code, text = attest_says("list", "arithmetic", "--backend", "flash", folder=folder)
    assert code == 2 and "--plugin" in text, text
    code, text = attest_says("list", "arithmetic", "--backend", "kernel", "--python", "two:Kernel", folder=folder)
    assert code == 1 and text.startswith("kernel\n"), text


def test_a_page_keeps_the_quotes_of_commands(folder):
    lines = ["seq=9 dim=4", "--python", "mine.py:attention", "--tensors", "dlpack"]
    attest_says("check", *lines, "--json", "a.jsonl", folder=folder)
    attest_says("bench", "seq=8 dim=4", "--backend", "example", "--repetitions", "2", "--min-time", "0.001", "--json",
                "b.json", folder=folder)  # fmt: skip
    attest_says("report", "a.jsonl", "b.json", "--out", "p.html", folder=folder)
    page = (folder / "p.html").read_text().replace("&#39;", "'").replace("&apos;", "'")
    assert "attest check 'seq=9 dim=4' --python" in page
    assert "attest bench 'seq=8 dim=4' --backend" in page
