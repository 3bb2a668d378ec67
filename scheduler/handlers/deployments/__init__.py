"""Deployments: what has to be done regularly for what the job worker made.

No tables: deployments are the job worker's. Imports no other domain.
"""
