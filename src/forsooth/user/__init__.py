"""The user's own model, data and methods: questions that need no ground truth.

Each is a folder of the same shape: `request` (what the user asks), `work` (the tasks), `result` (table, rows and
words) and `words` (the same in sentences).
"""
