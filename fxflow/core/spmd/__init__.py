"""What several devices and memories add; one-device code is read without it.

To be read in this order:

- `partition`: on which devices a program runs, and how its arguments are divided;
- `varying`: along which axes of a mesh values differ, which derivatives go by;
- `memories`: values in other memories than the devices' own.
"""
