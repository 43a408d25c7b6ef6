"""Paired statistics, guardrails and the decision (C6): from the predictions in a record to words that can be defended.

Pure functions of a record: nothing is written, the same record gives the same verdict. Imports plan and record, numpy and
scipy; no torch, no textual, no scikit-learn, so that a copied record is judged anywhere.

    stage.py        whether there can be a verdict yet: the entry, start reading here
    decide.py       the rules: supported, not supported, inconclusive
    conclude.py     from the candidates' words to the campaign's
    guardrails.py   what must not get worse (non-inferiority)
    bootstrap.py    the paired difference between two systems: point, interval, p-value
    multiple.py     several variants tested together (Holm, Bonferroni)
    metrics.py      metrics as functions of sums over examples, for many resamples at once
    tasks.py        what each task sums and measures: categories, texts, fields
    predictions.py  one run's answers as sums; whether two runs answered the same questions
    evidence.py     which runs of a record can be compared, and what is missing
    disagreement.py  how much systems differ on validation examples, for what the plan can show
    words.py        sentences
    model.py        the verdict as data
"""
