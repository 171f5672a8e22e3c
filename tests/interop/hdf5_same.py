"""Whether two HDF5 files hold the same, in h5py's eyes: links of every class and their order, objects, types, attributes, values,
references to the right objects, dimension scales."""

import h5py
import numpy as np


def names(group: h5py.Group) -> list[bytes]:
    """Names of links, in the order in which they were made where the group keeps that."""
    made = group.id.get_create_plist()
    order = h5py.h5.INDEX_CRT_ORDER if made.get_link_creation_order() & h5py.h5p.CRT_ORDER_TRACKED else h5py.h5.INDEX_NAME
    found = []
    group.id.links.iterate(lambda name: found.append(name), idx_type=order)
    return found


def address(item) -> int:
    return h5py.h5o.get_info(item.id).addr


class Same:
    """Compares two open files; `twins` says which object is which."""

    def __init__(self, old: h5py.File, new: h5py.File):
        self.twins: dict[int, int] = {}
        self.pairs: list = []
        self.objects = 0
        self.files = old, new
        self.group(old["/"], new["/"])
        for old_item, new_item in self.pairs:
            self.item(old_item, new_item)

    def group(self, old, new):
        if not self.meet(old, new):
            return
        assert names(old) == names(new), old.name
        assert old.id.get_create_plist().get_link_creation_order() == new.id.get_create_plist().get_link_creation_order()
        for name in names(old):
            kinds = [group.id.links.get_info(name) for group in (old, new)]
            assert kinds[0].type == kinds[1].type and kinds[0].cset == kinds[1].cset, (old.name, name)
            if kinds[0].type != h5py.h5l.TYPE_HARD:
                assert old.id.links.get_val(name) == new.id.links.get_val(name), (old.name, name)
                continue
            old_item, new_item = old[name], new[name]
            assert type(old_item) is type(new_item), (old.name, name)
            if isinstance(old_item, h5py.Group):
                self.group(old_item, new_item)
            else:
                self.meet(old_item, new_item)

    def meet(self, old, new) -> bool:
        """False where both were met; a hard link leads to one object in both files."""
        if address(old) in self.twins:
            assert self.twins[address(old)] == address(new), old.name
            return False
        self.twins[address(old)] = address(new)
        self.pairs.append((old, new))
        self.objects += 1
        return True

    def item(self, old, new):
        self.attributes(old, new)
        if isinstance(old, h5py.Datatype):
            assert old.id.equal(new.id), old.name
        if isinstance(old, h5py.Dataset):
            self.dataset(old, new)

    def attributes(self, old, new):
        count = h5py.h5a.get_num_attrs(old.id)
        assert count == h5py.h5a.get_num_attrs(new.id), old.name
        for i in range(count):
            index = h5py.h5.INDEX_NAME
            a, b = (h5py.h5a.open(item.id, index=i, index_type=index, order=h5py.h5.ITER_INC) for item in (old, new))
            assert a.name == b.name and a.shape == b.shape, (old.name, a.name)
            self.kind(a.get_type(), b.get_type())
            if a.get_space().get_simple_extent_type() == h5py.h5s.NULL:
                continue
            try:
                values = [item.attrs[a.name] for item in (old, new)]
            except (TypeError, OSError, ValueError):
                continue  # what h5py cannot read; h5diff does
            self.values(*values, f"{old.name}@{a.name}")

    def kind(self, old, new):
        assert old.equal(new)
        assert old.committed() == new.committed()
        if old.committed():
            assert self.twins[h5py.h5o.get_info(old).addr] == h5py.h5o.get_info(new).addr

    def dataset(self, old, new):
        self.kind(old.id.get_type(), new.id.get_type())
        assert old.shape == new.shape and old.maxshape == new.maxshape, old.name
        a, b = old.id.get_create_plist(), new.id.get_create_plist()
        assert a.fill_value_defined() == b.fill_value_defined(), old.name
        # An old header has times or not, whatever its list of properties says.
        a, b = (h5py.h5o.get_info(item.id).ctime for item in (old, new))
        assert (a == 0) == (b == 0), old.name
        if old.shape is None:
            return
        try:
            values = old[()]
        except (TypeError, OSError, ValueError):
            return
        self.values(values, new[()], old.name)
        try:
            assert old.fillvalue == new.fillvalue or old.fillvalue != old.fillvalue
        except (TypeError, ValueError, RuntimeError):
            pass

    def values(self, old, new, what):
        if isinstance(old, h5py.Reference):
            return self.reference(old, new, what)
        if isinstance(old, h5py.Empty):
            return
        old, new = np.asarray(old), np.asarray(new)
        assert old.dtype == new.dtype and old.shape == new.shape, what
        if old.dtype.names:
            for name in old.dtype.names:
                self.values(old[name], new[name], what)
        elif old.dtype == object:
            for a, b in zip(old.flat, new.flat):
                if isinstance(a, (h5py.Reference, np.ndarray)):
                    self.values(a, b, what)
                else:
                    assert a == b, what
        else:
            assert old.tobytes() == new.tobytes(), what

    def reference(self, old, new, what):
        files = self.files
        assert bool(old) == bool(new), what
        if not old:
            return
        a, b = (h5py.h5r.dereference(ref, file.id) for ref, file in zip((old, new), files))
        assert self.twins[h5py.h5o.get_info(a).addr] == h5py.h5o.get_info(b).addr, what
        if isinstance(old, h5py.RegionReference):
            a, b = (h5py.h5r.get_region(ref, file.id) for ref, file in zip((old, new), files))
            assert a.shape == b.shape and a.get_select_npoints() == b.get_select_npoints(), what
            assert a.get_select_bounds() == b.get_select_bounds(), what


def same(old, new) -> int:
    """Asserts that two files hold the same; how many objects they have."""
    with h5py.File(old) as a, h5py.File(new) as b:
        assert a.userblock_size == b.userblock_size
        found = Same(a, b).objects
    with open(old, "rb") as a, open(new, "rb") as b:
        with h5py.File(old) as file:
            block = file.userblock_size
        assert a.read(block) == b.read(block)
    return found
