"""The wizard: what it asks, what it knows, what follows. It edits the text of `campaign.toml` and nothing else.

questions.py     the steps, and what each asks of which field
answers.py       values as a person reads and types them
offers.py        answers that fit data, base and machine
assist.py        what can be answered from what was found
pages.py         a step as rows of a form, and how it stands
scene.py         everything known at a moment; knowing.py  how it comes to be known
asking.py        the processes that answer with one JSON document
consequences.py  what follows from the answers, step by step
items.py         asking for a guardrail, a variant, a grid
dialogs.py       questions about no field: a device, a cut, the launch
saving.py        writing as one types, never over somebody else's change
begin.py         a new campaign's folder
"""
