"""The commands, one file a group: thin and typed. Only a command that needs torch imports it."""
