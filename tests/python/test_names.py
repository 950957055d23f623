"""Names that are no UTF-8, and where a candidate's mistakes are placed."""

import os
import subprocess
import sys
import xml.etree.ElementTree

import kernels
import pytest

import attest

ODD = os.fsdecode(b"caf\xe9")


def attest_says(*words, folder):
    done = subprocess.run([sys.executable, "-m", "attest", *words], cwd=folder, capture_output=True)
    return done.returncode, (done.stdout + done.stderr).decode(errors="surrogateescape")


def test_files_of_odd_names(tmp_path):
    try:
        (tmp_path / f"{ODD}.cases").write_text("seq=4 dim=4\n")
    except OSError:
        pytest.skip("this file system has no such names")
    (tmp_path / f"{ODD}.py").write_text("def attention(q, k, v): return q * 2\n")
    code, text = attest_says("check", "--suite-file", f"{ODD}.cases", "--python", f"{ODD}.py:attention", "--junit",
                             f"{ODD}.xml", "--json", f"{ODD}.jsonl", folder=tmp_path)  # fmt: skip
    assert code == 1 and "Traceback" not in text, text
    xml.etree.ElementTree.parse(tmp_path / f"{ODD}.xml")
    for words in ((f"{ODD}=4",), ("--suite", ODD), (f"{ODD}.safetensors",), ("--suite-file", f"no{ODD}.cases"),
                  ("seq=4 dim=4", "--python", f"no{ODD}:attention"), ("seq=4 dim=4", "--plugin", f"{ODD}.so")):  # fmt: skip
        code, text = attest_says("check", *words, folder=tmp_path)
        assert code == 2 and text.count("\n") == 1, (words, text)


def test_odd_names_in_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        (tmp_path / f"{ODD}.cases").write_text("seq=4 dim=4\n")
    except OSError:
        pytest.skip("this file system has no such names")
    results = attest.check(kernels.attention, f"{ODD}.cases", junit=f"{ODD}.xml", json=f"{ODD}.jsonl")
    assert results.ok and str(results)
    xml.etree.ElementTree.parse(tmp_path / f"{ODD}.xml")
    for cases in (f"{ODD}.safetensors", ODD, f"seq={ODD}", f"no{ODD}.cases"):
        with pytest.raises(attest.UserError):
            attest.check(kernels.attention, cases)
        with pytest.raises(attest.UserError):
            attest.cases(cases)


def test_a_mistake_of_syntax_stands_at_its_own_line(tmp_path):
    (tmp_path / "broken.py").write_text("x = 1\n\ndef attention(q, k, v)\n    return q\n")
    (tmp_path / "beside.py").write_text("import broken\n")
    (tmp_path / "raises.py").write_text("x = 1\nraise ValueError('no such tile')\n")
    for words in ("broken:attention", "broken.py:attention", "beside:attention", "broken", "broken.py"):
        code, text = attest_says("check", "seq=4 dim=4", "--python", words, folder=tmp_path)
        assert code == 2 and text.count("\n") == 1, text
        assert "broken.py, line 3" in text and "importlib" not in text, text
    code, text = attest_says("check", "seq=4 dim=4", "--python", "raises:attention", folder=tmp_path)
    assert code == 2 and "raises.py, line 2" in text, text


def test_a_case_as_several_words(tmp_path):
    for words in (("check", "seq=4", "dim=4", "--backend", "example"), ("check", "seq=4", "dim=4", "causal", "seq=5", "dim=4"),
                  ("explain", "seq=4", "dim=4", "--backend", "example"), ("check", "seq=4 dim=4", "seq=5 dim=4")):  # fmt: skip
        code, text = attest_says(*words, folder=tmp_path)
        assert code == 0, text
    words = ["seq=4", "dim=4", "seq=5", "dim=4"]  # two cases: whether the second fails after the first
    code, text = attest_says("shrink", *words, "--backend", "example", folder=tmp_path)
    assert code == 0 and text.startswith("seq=5 dim=4\npass:"), text
    code, text = attest_says("shrink", *words, "seq=6", "dim=4", "--backend", "example", folder=tmp_path)
    assert code == 2 and text.count("\n") == 1 and "seq=6" in text, text
