"""`python -m forsooth`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:  # Python searches the working folder before all else, and a file torch.py may lie there
        sys.path.append(sys.path.pop(0))
    from forsooth.cli import main

    main()
