"""Tensors on a device, and a device that is lost."""

import json

from test_command_line import attest_says


def judged(tmp_path, name, *lines):
    """The verdicts of a class of on_device.py."""
    attest_says("check", *lines, "--python", f"on_device:{name}", "--no-shrink", "--json", str(tmp_path / "v.jsonl"))
    told = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    return [verdict for verdict in told if verdict["kind"] == "verdict"]


def test_a_device_is_stated_by_its_name():
    _, text = attest_says("check", "seq=5 dim=4", "--python", "on_device:OnDevice", "-v")
    assert "on Pretended 200 (pretended)" in text, text


def test_strides_stay_as_they_are_on_the_host(tmp_path):
    [verdict] = judged(tmp_path, "KeepsStrides", "seq=10 dim=4 k.strides=70,70,7,1 v.strides=0,0,0,1")
    assert verdict["status"] == "pass", verdict


def test_an_input_that_is_changed_on_the_device_is_a_failure(tmp_path):
    [verdict] = judged(tmp_path, "WritesInput", "seq=5 dim=4")
    assert verdict["status"] == "fail" and "changed its inputs" in verdict["reason"]


def test_a_cache_that_is_written_on_the_device_comes_back(tmp_path):
    dense = "heads=2 seq=3x10 dim=4 append"
    [verdict] = judged(tmp_path, "Appends", dense)
    assert verdict["status"] == "pass", verdict
    apart = dense + " k.strides=120,60,6,1"
    passed, failed = (judged(tmp_path, name, apart)[0] for name in ("Appends", "AppendsBetween"))
    assert passed["status"] == "pass", passed
    assert failed["status"] == "fail" and "wrote between the elements of k" in failed["reason"], failed


def test_lengths_of_a_run_are_on_the_device(tmp_path):
    [verdict] = judged(tmp_path, "Dynamic", "batch=3 heads=2 seq=3x10 dim=4 dynamic lengths=q:3,1,2/k:10,4,9")
    assert verdict["status"] == "pass", verdict


def test_a_lost_device_is_one_verdict_and_the_next_case_has_a_device(tmp_path):
    verdicts = judged(tmp_path, "LosesDevice", "seq=2 dim=4", "seq=3 dim=4", "seq=4 dim=4")
    assert [verdict["status"] for verdict in verdicts] == ["pass", "crashed", "pass"]
    assert verdicts[1]["cause"] == "lost its device"
    assert verdicts[1]["reason"].startswith("RuntimeError: misaligned address")


def test_a_lost_device_ends_a_run_without_a_process_of_its_own():
    code, text = attest_says(
        "check", "seq=3 dim=4", "seq=4 dim=4", "--python", "on_device:LosesDevice", "--no-isolate", "--no-shrink"
    )
    assert code == 2 and "an earlier case lost the device to this process" in text, text


def test_an_exception_without_loss_is_told_without_its_notes(tmp_path):
    [verdict] = judged(tmp_path, "Throws", "seq=2 dim=4")
    assert verdict["status"] == "fail" and "RuntimeError: says this" in verdict["reason"]
    assert "note" not in verdict["reason"]
