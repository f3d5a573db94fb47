"""What the kernel costs, measured beside the field, in paired ratios from one run."""
