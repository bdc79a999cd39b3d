"""Files of networks: BIF, XMLBIF, UAI and JSON."""
