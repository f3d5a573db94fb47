"""The audit list, receipts, bundles and exports."""
