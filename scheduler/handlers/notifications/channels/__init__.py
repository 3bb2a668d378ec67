"""The ways out: a module per kind of channel, all behind `border`."""
