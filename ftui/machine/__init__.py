"""The host: NVIDIA GPUs through NVML, host memory and processes through psutil, versions, and ."""
