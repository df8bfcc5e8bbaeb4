"""The command line: ``penstock COMMAND``, one file per command."""

from penstock.cli.app import main as main
