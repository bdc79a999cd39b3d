"""File formats of networks: BIF, XMLBIF, XDSL, NET, UAI and JSON."""
