"""The data path of switch slots in C."""
