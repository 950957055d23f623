import pytest
from example_py import Kernel


@pytest.mark.attest("smoke")
def test_attention(attest_case):
    attest_case.check(Kernel)
