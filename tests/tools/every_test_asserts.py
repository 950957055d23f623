#!/usr/bin/env python3
"""every_test_asserts.py [FILE...]: no body of a TEST, TEST_F or TEST_P is without an assertion. One counts that stands in
the body itself, or in a function of the same file or of helpers.h that the body calls, directly or through others.
Comments and strings count for nothing."""
import pathlib
import re
import sys

UNIT = pathlib.Path(__file__).parent.parent / "unit"
NO_CODE = re.compile(r'R"\(.*?\)"|"(?:\\.|[^"\\])*"|(?<!\d)\'(?:\\.|[^\'\\])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
ASSERTION = re.compile(r"\b(?:(?:EXPECT|ASSERT)_[A-Z]|ADD_FAILURE|GTEST_FAIL|(?:FAIL|SUCCEED) *\()")
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)\s*\{", re.MULTILINE)
FUNCTION = re.compile(r"\b(?!(?:if|for|while|switch|catch|return|sizeof|decltype|TEST\w*)\b)(\w+) ?\([^;{}]*\)[^;{}()]*\{")


def body(text, start):
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if not depth:
            return text[start:at]
    return text[start:]


helpers = NO_CODE.sub("", (UNIT / "helpers.h").read_text())
wrong = 0
for file in map(pathlib.Path, sys.argv[1:]) if sys.argv[1:] else sorted(UNIT.glob("*_test.cpp")):
    text = NO_CODE.sub("", file.read_text())
    functions = {}
    for part in (helpers, text):
        for found in FUNCTION.finditer(part):
            functions[found[1]] = functions.get(found[1], "") + body(part, found.end())
    asserting, before = {name for name in functions if ASSERTION.search(functions[name])}, None
    while before != asserting:
        before = set(asserting)
        calls = re.compile(r"\b(?:%s) ?(?:<[^()]*>)?\(" % "|".join(asserting or {"-"}))
        asserting |= {name for name in functions if calls.search(functions[name])}
    tests = list(TEST.finditer(text))
    for test in tests:
        own = body(text, test.end())
        if not ASSERTION.search(own) and not calls.search(own):
            print(f"{file}: {test[1]}.{test[2]} asserts nothing")
            wrong = 1
    if len(tests) != len(re.findall(r"^TEST(?:_F|_P)?\(", text, re.MULTILINE)) or not tests:
        print(f"{file}: a test without a body that was found, or none")
        wrong = 1
sys.exit(wrong)
