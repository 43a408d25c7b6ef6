"""The supervisor of a campaign, and the small client through which app and command line reach it.

One detached process per campaign decides what happens next from the journal alone, so a new one takes up where a killed one
stood. It starts every job as a process of its own and imports no torch. Imports plan, record, machine.

    __main__.py    `python -m ftui.engine [--detach] [--only-gates] [--because TEXT] CAMPAIGN`
    client.py      start, stop, is it alive: all that app and command line may use
    lock.py        one supervisor per campaign; who it is
    steps.py       what happens next: a pure function of state, clock and free places
    deadlines.py   until when may be trained and evaluated, so that report and artefact exist at the rental's end
    estimate.py    what is still to come, in seconds: from the pilot, then from the runs themselves
    left.py        what of a launched campaign still fits, from now on
    supervisor.py  the loop: steps become jobs
    endings.py     what follows from a job that has ended
    queue.py       how runs come into the queue, and their settings
    wishes.py      what people want: requests and their answers
    jobs.py        processes: start, adopt, end
    trees.py       all processes of a job, and the end of what it leaves behind
    causes.py      why it ended: one cause, the first, in words
    symptoms.py    what lines of a log mean
    logs.py        a job's log, read as evidence and kept from filling the disk
    retries.py     whether a lost run goes on, by its cause
    room.py        a full disk: who waits for room, and how
    silence.py     training processes that make no progress
    postmortem.py  what is found when a job has ended
    launch.py      the command and environment of each job
    placement.py   which device or core a run gets
    leases.py      one campaign at a time has a place, host-wide
    amend.py       which changes of a launched plan are amendments, and which of those need a reason
    fit.py         the search for the largest micro-batch, started and told
    copy.py        `python -m ftui.engine.copy CAMPAIGN`: one copy of what is new, verified
    copies.py      when a copy is due, tried again and told of
    destination.py where copies go: a folder, or what fsspec knows
    hand_over.py   copies made by a person's own program
    reading.py     one state of a file that may be written meanwhile
    notify.py      a person's own program is told of events
    follow.py      the journal and series as lines for a person
"""
