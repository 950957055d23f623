"""Arguments of the commands of `python -m attest`: what argparse rejects is an error of the user, in one line."""

import argparse
from typing import NoReturn

from attest import _attest


class Parser(argparse.ArgumentParser):
    """Of a command; `prog` ends with its name."""

    def error(self, message: str) -> NoReturn:
        raise _attest.UserError(f"{self.prog.split()[-1]}: {message}; see `{self.prog} --help`")
