"""The host as it is: NVIDIA GPUs, memory, processors, processes, versions. Answers, and never waits for long.

Imports plan and record; no torch, no textual. Memory as the host sees it is not what a training process allocated: that the
process itself says, in its series and gates.

    sample.py    one moment: host, GPUs, and the process tree of each run
    nvidia.py    GPUs through NVML, behind a time limit
    cgroup.py    memory limits of the container this runs in
    kernel.py    processes the kernel ended for want of memory, faults of GPUs
    versions.py  versions of everything that may change a result, and their fingerprint
    devices.py   devices that can be rented, by their data sheets
    doctor.py    whether this machine is fit for a campaign
"""
