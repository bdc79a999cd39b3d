"""Tests of fitted models against their releases."""
