"""Proofs: what Penstock promises on real Spark, measured on the machine at hand.

One file per proof. Each has a frozen ``Spec`` and a function ``prove(spec, folder=…, say=…)`` that
runs it and returns a :class:`~penstock.lab.proofs.proof.Proof`: figures beside their bounds.
"""
