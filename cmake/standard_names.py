# SPDX-License-Identifier: BSL-1.0
"""Which headers of the standard library declare the names that dfdx uses: a table, and the check of lint.py.

The test `headers` shows each of ours all of the standard library where it includes any of it, so that it cannot see that
an include of it is missing. This can.
"""
import pathlib
import re

# A name with two headers is declared by either.
NAMES = {
    "algorithm": """all_of any_of binary_search clamp copy copy_n count equal fill fill_n find find_if lower_bound max max_element
        min none_of nth_element partial_sort reverse rotate sort stable_sort swap_ranges transform unique
        upper_bound""",
    "any": "any",
    "array": "array get to_array tuple_size tuple_size_v",
    "atomic": """atomic atomic_flag atomic_signal_fence memory_order_acq_rel memory_order_acquire memory_order_relaxed
        memory_order_release memory_order_seq_cst""",
    "bit": "bit_cast bit_width countl_zero countr_zero endian has_single_bit popcount",
    "bitset": "bitset",
    "charconv": "chars_format from_chars to_chars",
    "chrono": "chrono",
    "cmath": """abs acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor
        fma fmax fmin fmod hypot isfinite isinf isnan ldexp lgamma llround log log10 log1p log2 lround nearbyint pow
        round signbit sin sinh sqrt tan tanh trunc""",
    "complex": "complex",
    "concepts": "convertible_to equality_comparable floating_point integral invocable same_as",
    "condition_variable": "condition_variable",
    "cstddef": "byte max_align_t nullptr_t ptrdiff_t size_t to_integer",
    "cstdint": """int16_t int32_t int64_t int8_t intptr_t uint16_t uint32_t uint64_t uint8_t uintmax_t uintptr_t""",
    "cstdio": "FILE fclose ferror fflush fopen fprintf fputc fread fwrite printf remove rename snprintf",
    "cstdlib": "abort exit getenv malloc free",
    "cstring": "memcmp memcpy memmove memset size_t strcmp strerror strlen",
    "deque": "deque erase_if",
    "exception": "current_exception exception exception_ptr rethrow_exception",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "function greater hash less plus",
    "initializer_list": "begin end initializer_list",
    "ios": "ios streamsize",
    "iosfwd": "basic_ostream",
    "iterator": "begin end back_inserter next prev size",
    "limits": "numeric_limits",
    "map": "erase_if map",
    "memory": "make_shared make_unique make_unique_for_overwrite shared_ptr unique_ptr",
    "mutex": "call_once lock_guard mutex once_flag unique_lock",
    "new": "align_val_t bad_alloc launder",
    "numbers": "numbers",
    "numeric": "accumulate iota reduce",
    "optional": "nullopt optional",
    "ostream": "basic_ostream flush ostream",
    "queue": "priority_queue queue",
    "regex": "regex regex_error regex_match",
    "set": "set",
    "span": "begin end size span",
    "sstream": "ostringstream stringstream istringstream",
    "stdexcept": "invalid_argument logic_error out_of_range runtime_error",
    "string": "begin end erase_if getline size stoi stod string to_string u32string",
    "string_view": "begin end size string_view",
    "system_error": "errc error_code",
    "thread": "this_thread thread",
    "tuple": """apply get make_from_tuple make_tuple tie tuple tuple_cat tuple_element tuple_element_t tuple_size
        tuple_size_v""",
    "type_traits": """bool_constant common_type_t conditional_t decay_t false_type integral_constant invoke_result_t
        is_aggregate_v is_arithmetic_v is_array_v is_base_of_v is_const_v is_constant_evaluated is_convertible_v
        is_default_constructible_v
        is_empty_v is_enum_v is_floating_point_v is_integral_v is_invocable_v is_pointer_v is_same_v is_signed_v
        is_trivially_copyable_v is_trivially_default_constructible_v is_unsigned_v is_void_v make_signed_t
        make_unsigned_t remove_const_t remove_cv_t remove_cvref_t remove_pointer_t remove_reference_t true_type
        type_identity type_identity_t underlying_type_t""",
    "unordered_map": "erase_if unordered_map",
    "unordered_set": "unordered_set",
    "utility": """as_const declval exchange forward get in_range index_sequence index_sequence_for integer_sequence
        make_index_sequence make_integer_sequence move pair swap tuple_element_t tuple_size_v unreachable""",
    "variant": "get get_if holds_alternative monostate variant variant_alternative_t variant_size_v visit",
    "vector": "begin end erase_if size vector",
}
# The namespaces of other libraries, and how the names of their headers begin.
LIBRARIES = {"xsimd": "xsimd/", "hana": "boost/", "nlohmann": "nlohmann/"}

DECLARING: dict[str, set[str]] = {}
for _header, _names in NAMES.items():
    for _name in _names.split():
        DECLARING.setdefault(_name, set()).add(_header)

COMMENT = re.compile(r"//.*|\"(?:[^\"\\\n]|\\.)*\"")


def code_of(lines: list[str]) -> list[str]:
    return [COMMENT.sub('""', line) if not line.lstrip().startswith("#") else line for line in lines]


def findings(headers: dict[str, list[str]]):
    """(place, what) for every name whose header neither the file nor one of ours that it includes brings."""
    included: dict[str, set[str]] = {}  # by each header and the headers of ours that it includes

    def closure(name: str) -> set[str]:
        if name not in included:
            included[name] = set()
            for line in headers.get(name, []):
                match = re.match(r"\s*#\s*include\s*<([^>]+)>", line)
                if match:
                    included[name] |= closure(match[1]) if match[1].startswith("dfdx/") else {match[1]}
        return included[name]

    for name, lines in headers.items():
        seen = closure(name)
        for number, line in enumerate(code_of(lines), 1):
            where = f"include/{name}:{number}"
            for used in re.findall(r"\bstd::(\w+)", line):
                if used not in DECLARING:
                    yield where, f"std::{used} is not in cmake/standard_names.py"
                elif not DECLARING[used] & seen:
                    yield where, f"std::{used} needs {' or '.join(f'<{header}>' for header in sorted(DECLARING[used]))}"
            for used in re.findall(r"\b(\w+)::", line):
                if used in LIBRARIES and not any(header.startswith(LIBRARIES[used]) for header in seen):
                    yield where, f"{used}:: needs a header <{LIBRARIES[used]}...>"
