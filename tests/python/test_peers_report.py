"""Runs of adapters to other libraries, and the pages that are made of their results, without any of these libraries."""

import gzip
import json
import os
import re
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

tomllib = pytest.importorskip("tomllib")  # of Python 3.11

PEERS = Path(os.environ.get("ATTEST_PEERS", str(Path(__file__).parent / "../../backends/peers")))
sys.path.insert(0, str(PEERS))

import peer_results  # noqa: E402
import peer_tables  # noqa: E402
import posts  # noqa: E402
import report  # noqa: E402
import run  # noqa: E402


def test_each_bug_has_a_program_and_each_finding_a_peer():
    findings = peer_results.all_findings()
    peers = tomllib.loads((PEERS / "peers.toml").read_text())
    bugs = [finding["name"] for finding in findings if finding["kind"] == "bug" and "part_of" not in finding]
    assert sorted(bugs) == sorted(path.stem for path in (PEERS / "bugs").glob("*.py"))
    for finding in findings:
        assert any(fnmatch(peer, pattern) for peer in peers for pattern in finding["peers"]), finding["name"]
        assert finding.get("part_of", bugs[0]) in bugs
    for peer in peers.values():
        assert (PEERS / "environments" / f"{peer['environment']}.lock").exists()


def test_a_report_names_functions_machine_and_versions():
    findings = peer_results.all_findings()
    options = {option["name"] for option in peer_tables.options_of()} | {
        "a query that sees nothing", "NaN in hidden keys and values",
    }  # fmt: skip
    for finding in (each for each in findings if each["kind"] == "bug"):
        assert set(finding["options"]) <= options, finding["name"]
        if "part_of" in finding:
            continue
        ran = {
            "wrong": 3,
            "runs": 3,
            "says": "got 1",
            "machine": "a system; a processor",
            "versions": ["its library 1.0"],
        }
        title, _, library, *rest = posts.post(finding, ran).splitlines()
        assert re.search("`.+`", title), finding["name"]
        assert "its library 1.0" in library and "System and processor: a system; a processor." in rest
        sentences = [line for line in rest if line.startswith("**")]
        heads = [line.partition(":**")[0] for line in sentences]
        assert heads == ["**Expected", "**Cause", "**Who is hit", "**Related"], finding["name"]
        assert all(line.endswith((".", '."', ".)")) for line in sentences), sentences


def test_what_a_row_that_sees_nothing_gives_is_stated_by_one_rule():
    findings = peer_results.all_findings()
    peers = tomllib.loads((PEERS / "peers.toml").read_text())
    for finding in findings:
        if not finding.get("empty_row"):
            continue
        for name, peer in peers.items():
            if not any(fnmatch(name, pattern) for pattern in finding["peers"]):
                continue
            source = (PEERS / (peer["object"].partition(":")[0].replace(".", "/") + ".py")).read_text()
            assert ('"empty_row"' in source) == (finding["kind"] == "convention"), (name, finding["name"])


def test_a_failure_is_of_the_finding_that_it_fits():
    finding = {"peers": ["ort*"], "cause": "^o: outside", "case": "causal", "last_query": True}
    verdict = {"case": "seq=3x5 dim=1 causal", "cause": "o: outside the bound", "worst": {"index": [0, 0, 2, 0]}}
    assert peer_results.fits(finding, "ort_mha", verdict)
    assert not peer_results.fits(finding, "jax", verdict)
    assert not peer_results.fits(finding, "ort_mha", {**verdict, "worst": {"index": [0, 0, 1, 0]}})
    assert not peer_results.fits(finding, "ort_mha", {**verdict, "cause": "threw", "worst": None})
    empty = {"peers": ["*"], "empty_row": True}
    assert peer_results.fits(empty, "jax", {**verdict, "worst": {"expected": 0.0, "bound": 0.0}})
    assert not peer_results.fits(empty, "jax", {**verdict, "worst": {"expected": 0.0, "bound": 1e-9}})
    assert not peer_results.fits({"peers": ["*"], "at_most": 64}, "jax", {**verdict, "error_over_bound": "inf"})


def test_codes_are_put_to_plain_calls_in_turn():
    lines = [
        "heads=2 seq=3 dim=4 causal layout=bld fill=huge out=o,lse seed=7", "op=linear seq=1",
        "dtype=f16 seq=2 dim=4 past=1", "seq=2 dim=4", "seq=2 dim=15",
    ]  # fmt: skip
    assert list(run.with_codes(lines, ["k.dtype=i8", "k.dtype=i4"])) == [
        "heads=2 seq=3 dim=4 causal seed=7 k.dtype=i8", "dtype=f16 seq=2 dim=4 past=1 k.dtype=i4",
        "seq=2 dim=4 k.dtype=i8", "seq=2 dim=15 k.dtype=i8",
    ]  # fmt: skip


def test_linear_is_run_by_peers_that_have_it(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(run, "interpreter_of", lambda name, peer, environments: Path("python3"))
    monkeypatch.setattr(run, "lines_of", lambda *_: ["seq=1 dim=1"])
    monkeypatch.setattr(run, "check", lambda interpreter, name, peer, suite, lines, results: ran.append((name, suite)))
    monkeypatch.setattr(sys, "argv", ["run.py", "--peers", "jax,onnxruntime_linear", "--results", str(tmp_path)])
    run.main()
    assert ("onnxruntime_linear", "linear") in ran and ("jax", "matrix") in ran
    assert ("jax", "linear") not in ran


def test_what_fuzzing_finds_is_counted_and_checked(tmp_path):
    found_in = {"PYTHONPATH": os.pathsep.join([str(PEERS), str(Path(__file__).parent)])}
    for name, words in (("right", "kernels:Exact"), ("wrong", "test_closer:without_scale")):
        run.fuzz(Path(sys.executable), name, {"object": words, "variables": found_in}, 5, tmp_path)
    counts = json.loads((tmp_path / "fuzz.json").read_text())
    assert counts["right"]["seconds"] == 5 and counts["right"]["passed"] > 0 and counts["right"]["failed"] == 0
    assert not (tmp_path / "right.fuzz.jsonl.gz").exists()
    assert counts["wrong"]["failed"] > 0
    with gzip.open(tmp_path / "wrong.fuzz.jsonl.gz", "rt") as file:
        told = [json.loads(line) for line in file]
    assert "fail" in {line["status"] for line in told if line["kind"] == "verdict"}
    assert "fail" in run.counts_of(told) and run.counts_of([]) == "no verdicts"


def test_an_adapter_that_is_not_loaded_again_leaves_no_counts_of_failures(tmp_path, monkeypatch):
    def module(_interpreter, name, *words, **_):
        if name == "attest_peers.fuzz_peer":
            Path(words[3]).write_text(json.dumps({"counts": {"cases": 1, "failed": 1}, "smallest": ["seq=1 dim=1"]}))
        return subprocess.CompletedProcess([], 2, "", "no adapter here")

    monkeypatch.setattr(run, "module", module)
    monkeypatch.setattr(run, "attest_data", lambda _interpreter: tmp_path)
    results = tmp_path / "results"
    with pytest.raises(SystemExit, match="gone, fuzz: no adapter here"):
        run.fuzz(Path(sys.executable), "gone", {"object": "gone:Kernel"}, 5, results)
    assert not list(results.iterdir())


def test_conventions_that_a_peer_states_have_a_column(tmp_path, monkeypatch):
    def row(peer, *statuses):
        (tmp_path / "peers").mkdir(exist_ok=True)
        with gzip.open(tmp_path / "peers" / f"{peer}.smoke.jsonl.gz", "wt") as file:
            lines = [{"kind": "verdict", "case": "seq=1 dim=1", "status": status, "cause": None} for status in statuses]
            for line in [{"kind": "run", "backends": [{"library": "its library"}]}, *lines]:
                file.write(json.dumps(line) + "\n")

    monkeypatch.setattr(peer_results, "RESULTS", tmp_path)
    row("jax", "pass", "pass", "refused")
    assert "`convention`" not in peer_tables.suites_table(["jax"], [])[0]
    row("mlx", "pass", "convention", "convention", "inconclusive")
    head, _, jax, mlx = peer_tables.suites_table(["jax", "mlx"], [])
    assert head.endswith(" `convention`: as the peer states |")
    assert jax.endswith(" 0 |") and mlx.endswith(" 2 |") and "1 pass, 2 convention, 1 inconclusive" in mlx


def test_a_rerun_with_another_verdict_is_an_error(tmp_path, monkeypatch):
    def write(folder, status):
        folder.mkdir(parents=True, exist_ok=True)
        with gzip.open(folder / "jax.smoke.jsonl.gz", "wt") as file:
            for line in ({"kind": "run"}, {"kind": "verdict", "case": "seq=1 dim=1", "status": status, "cause": None}):
                file.write(json.dumps(line) + "\n")

    monkeypatch.setattr(peer_results, "RESULTS", tmp_path)
    write(tmp_path / "peers", "pass")
    write(tmp_path / "again", "pass")
    report.rerun(tmp_path / "again")
    write(tmp_path / "again", "fail")
    with pytest.raises(SystemExit, match="seq=1 dim=1"):
        report.rerun(tmp_path / "again")


def written(folder, peer, suite, *lines, **machine):
    """A result file as run.py writes it."""
    (folder / "peers").mkdir(exist_ok=True)
    header = {"kind": "run", "machine": machine, "backends": [{"library": "its library", "device": "CPU"}]}
    with gzip.open(folder / "peers" / f"{peer}.{suite}.jsonl.gz", "wt") as file:
        for line in (header, *lines):
            file.write(json.dumps(line) + "\n")


def verdict(case, status="pass", **more):
    return {"kind": "verdict", "case": case, "status": status, "cause": None, **more}


def test_the_support_matrix_says_right_wrong_or_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(peer_results, "RESULTS", tmp_path)
    stated = "not as attest does it, and as the backend states: empty_row=nan"
    written(
        tmp_path, "jax", "matrix", verdict("seq=2 dim=1 causal"), verdict("seq=2 dim=1 softcap=2"),
        verdict("seq=2x0 dim=1", "fail", cause="threw"), verdict("seq=2 dim=1 sinks", "inconclusive"),
        verdict("seq=2 dim=1 causal scale=0", "fail", cause="o: outside the bound"),
        verdict("seq=2 dim=1 mask=bool:1111:none", "convention", reason=stated),
        {"kind": "refused", "reason": "dropout: none", "count": 3},
    )  # fmt: skip
    written(tmp_path, "mlx", "smoke", verdict("a", "convention", reason="empty_row=mean of v, hidden_nan=leaks"))
    findings = [
        {"name": "zero", "kind": "bug", "peers": ["jax"], "cause": "outside", "options": ["scale"]},
        {"name": "empty", "kind": "limit", "peers": ["jax"], "cause": "threw"},
    ]
    rows = dict(line.strip("| ").split(" | ") for line in peer_tables.support(["jax"], findings)[2:])
    assert rows["causal"] == "yes" and rows["dropout"] == "no" and rows["sinks"] == "?"
    assert rows["scale"] == "[wrong](peers/posts/zero.md)" and rows["no keys"] == "[limit](#limits)"
    assert rows["a query that sees nothing"] == "NaN" and peer_tables.answers("mlx", []) == ("mean", "leaks")
    assert rows["NaN in hidden keys and values"] == "stays out"
    assert peer_tables.share("jax") == "66%" and peer_results.cases_of("jax", "matrix") == 9
    assert "dropout: none (3)" in peer_tables.refused_table(["jax"])[2]


def test_tables_say_where_their_results_are_from(tmp_path, monkeypatch):
    monkeypatch.setattr(peer_results, "RESULTS", tmp_path)
    written(tmp_path, "jax", "smoke", verdict("seq=1 dim=1"), cpu="A", instructions=["AVX2"], system="Linux")
    written(tmp_path, "mlx", "smoke", verdict("seq=1 dim=1"), cpu="A", instructions=["AVX2"], system="Linux")
    written(tmp_path, "iree", "smoke", verdict("seq=1 dim=1"), cpu="B")
    lines = peer_tables.environment(["jax", "mlx", "iree"], ["smoke"])
    assert lines == ["Environment: A (AVX2), CPU, Linux. `iree`: B (instruction sets not recorded), CPU.", ""]


def test_refused_cases_of_large_suites_are_one_line_for_each_reason():
    lines = [verdict("a", "refused", reason="x"), verdict("b"), verdict("c", "refused", reason="x")]
    assert run.summed(lines, True) == [lines[1], {"kind": "refused", "reason": "x", "count": 2}]
    assert run.summed(lines, False) == lines
    assert run.kept({**verdict("a"), "worst": {"got": 1}, "repro": "..."}) == {
        "kind": "verdict", "case": "a", "status": "pass",
    }  # fmt: skip
    assert run.kept({**verdict("a", "fail"), "worst": {"got": 1}})["worst"] == {"got": 1}
