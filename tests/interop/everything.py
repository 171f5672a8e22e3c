"""A SLOW5 text with every auxiliary type, arrays, missing values, enums, several read groups and signals that strain
each coding. slow5lib turns it into the binary files of the tests."""

# type, then a value for each of two reads; a third read has every field missing
TAME = {
    "a_i8": ("int8_t", "-128", "126"),
    "a_i16": ("int16_t", "-32768", "32766"),
    "a_i32": ("int32_t", "-2147483648", "2147483646"),
    "a_i64": ("int64_t", "-9223372036854775808", "9223372036854775806"),
    "a_u8": ("uint8_t", "0", "254"),
    "a_u16": ("uint16_t", "0", "65534"),
    "a_u32": ("uint32_t", "0", "4294967294"),
    "a_u64": ("uint64_t", "0", "18446744073709551614"),
    "a_float": ("float", "-0.5", "1234.5"),
    "a_double": ("double", "-1.25", "202.391125"),
    "a_char": ("char", "x", "~"),
    "a_enum": ("enum{unknown,signal_positive,signal_negative}", "0", "2"),
    "b_i8": ("int8_t*", "-128,0,126", "1"),
    "b_i16": ("int16_t*", "-32768,0,32766", "1,2"),
    "b_i32": ("int32_t*", "-2147483648,0,2147483646", "1,2,3"),
    "b_i64": ("int64_t*", "-9223372036854775808,0,9223372036854775806", "1"),
    "b_u8": ("uint8_t*", "0,254", "1"),
    "b_u16": ("uint16_t*", "0,65534", "1"),
    "b_u32": ("uint32_t*", "0,4294967294", "1"),
    "b_u64": ("uint64_t*", "0,18446744073709551614", "1"),
    "b_float": ("float*", "0,-0.5,1234.5", "0.25"),
    "b_double": ("double*", "0,-1.25,202.391125", "0.125"),
    "b_string": ("char*", "115", "a longer string, with commas; and 'quotes'"),
    "b_enum": ("enum*{a,b,c}", "0,1,2", "2"),
    # the name that nanopore files really have
    "channel_number": ("char*", "512", "1"),
}

# Floats whose decimal text is long: binary files must keep every bit. (slow5lib reads no exponents in text.)
AWKWARD = {
    "c_float": ("float", "340282346638528860000000000000000000000", "0.000000000000000000000000000012345678"),
    "c_double": ("double", "0.1234567890123456789", "0.00000000000000000000000000000000000000000000000012345678901234567"),
    "c_doubles": ("double*", "-0.0,3.141592653589793", "123456789.123456789,-0.3"),
}

# slow5lib 1.5.0 ends with a failed assertion when it writes this signal as ex-zd
NOT_FOR_SLOW5LIB_EX_ZD = "full_range_noise"


def signals() -> dict[str, list[int]]:
    """Signals by read id. Lengths around the block sizes of the codecs, and both ends of int16."""
    state = 12345

    def noise(low: int, high: int) -> int:
        nonlocal state
        state = (state * 1103515245 + 12345) % 2**31
        return low + (state >> 8) % (high - low + 1)

    made = {f"noise_{n}": [noise(300, 700) for _ in range(n)] for n in (1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 127, 128, 129, 1000)}
    made["constant"] = [500] * 100
    made["ramp"] = list(range(-500, 500))
    made["extremes"] = [-32768, 32767] * 50
    made["full_range_noise"] = [noise(-32768, 32767) for _ in range(777)]
    # ex-zd: none, one, and many deltas that do not fit in one byte
    made["one_exception"] = [500 + i % 3 for i in range(200)] + [5000 + i % 3 for i in range(200)]
    made["many_exceptions"] = [500 + 3000 * (i % 7 == 0) for i in range(500)]
    # ex-zd shifts the samples right where all are multiples of a power of two
    made["multiples_of_8"] = [8 * noise(10, 90) for _ in range(300)]
    made["multiples_of_32"] = [32 * noise(-90, 90) for _ in range(300)]
    return made


def text(fields: dict[str, tuple[str, str, str]], without: str | None = None) -> str:
    groups = 3
    lines = [
        "#slow5_version\t0.2.0",
        f"#num_read_groups\t{groups}",
        "@asic_id\t4175987214\t.\t1",
        "@exp_start_time\t2020-01-01T00:00:00Z\t2021-01-01T00:00:00Z\t.",
        "@run_id\trun_0\trun_1\trun_2",
        "\t".join(
            ["#char*", "uint32_t", "double", "double", "double", "double", "uint64_t", "int16_t*"]
            + [kind for kind, _, _ in fields.values()]
        ),
        "\t".join(
            ["#read_id", "read_group", "digitisation", "offset", "range", "sampling_rate", "len_raw_signal", "raw_signal"]
            + list(fields)
        ),
    ]
    for number, (read_id, signal) in enumerate(signals().items()):
        if read_id == without:
            continue
        values = [row[1 + number % 3] if number % 3 < 2 else "." for row in fields.values()]
        lines.append(
            "\t".join(
                [read_id, str(number % groups), "8192", "16", "1489.52832", "4000", str(len(signal))]
                + [",".join(map(str, signal))]
                + values
            )
        )
    return "\n".join(lines) + "\n"
