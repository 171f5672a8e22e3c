"""Calls thalweg's C interface from Python with ctypes: an array of an HDF5 file, and neighbours in a network.

    python from_python.py target/release/libthalweg_c.so run.nxs /entry/bank1_events/event_id network Astrocyte Neuron

Prints the shape, the type and the sum of the array, then the neighbours of the first ten vertices. For Python there is a
package, thalweg. This shows what any language with C calls does.
"""

import ctypes
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_uint32, c_uint64, c_void_p

import numpy as np


class Array(ctypes.Structure):
    _fields_ = [
        ("rank", c_uint32),
        ("shape", c_uint64 * 32),
        ("element_size", c_uint64),
        ("bytes", c_uint64),
        ("type", c_char * 64),
    ]


class Lists(ctypes.Structure):
    _fields_ = [
        ("count", c_uint64),
        ("offsets", POINTER(c_uint64)),
        ("ids", POINTER(c_uint64)),
        ("owner", c_void_p),
    ]


def main(library, file, path, store, source, target):
    thalweg = ctypes.CDLL(library)
    thalweg.thw_error.restype = c_char_p
    thalweg.thw_arrays_read.argtypes = [c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, ctypes.c_size_t]

    def check(code):
        if code < 0:
            raise SystemExit(thalweg.thw_error().decode())

    arrays = c_void_p()
    check(thalweg.thw_arrays_open(file.encode(), None, byref(arrays)))
    info = Array()
    check(thalweg.thw_arrays_info(arrays, path.encode(), byref(info)))
    values = np.empty(info.shape[: info.rank], info.type.decode())
    check(thalweg.thw_arrays_read(arrays, path.encode(), None, None, values.ctypes.data, values.nbytes))
    print(*values.shape, values.dtype.str, values.sum())
    thalweg.thw_arrays_free(arrays)

    network = c_void_p()
    check(thalweg.thw_network_open(store.encode(), None, byref(network)))
    ids = (c_uint64 * 10)(*range(10))
    ends = source.encode(), target.encode()
    lists = Lists()
    check(thalweg.thw_neighbors(network, *ends, ids, ctypes.c_size_t(len(ids)), byref(lists)))
    for place in range(lists.count):
        found = lists.ids[lists.offsets[place] : lists.offsets[place + 1]]
        print(ids[place], *found)
    thalweg.thw_lists_free(byref(lists))
    thalweg.thw_network_free(network)


if __name__ == "__main__":
    if len(sys.argv) != 7:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
