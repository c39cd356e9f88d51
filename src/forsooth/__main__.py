"""`python -m forsooth`."""

from forsooth.cli import main

if __name__ == "__main__":
    main()
