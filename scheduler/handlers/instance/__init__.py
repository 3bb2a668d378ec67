"""The instance as a whole: what it tells a central service about itself.

No tables: `instance_id` is the one version of the setting "Instance".
"""
