import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_core.errors import InputError
from temper_core.quantities import LARGEST, cpu_millis, memory_bytes

# Written out, so that nothing is computed the way the code under test does.
WORTH = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(1024),
    "Mi": Fraction(1048576),
    "Gi": Fraction(1073741824),
    "Ti": Fraction(1099511627776),
    "Pi": Fraction(1125899906842624),
    "Ei": Fraction(1152921504606846976),
}
numbers = st.from_regex(r"\A(0|[1-9][0-9]{0,12}|[0-9]{0,6}\.[0-9]{1,12}|[0-9]{1,6}\.)\Z")


@pytest.mark.parametrize(
    ("quantity", "millis"),
    [
        ("0", 0),
        ("-0", 0),
        ("+1", 1000),
        ("1", 1000),
        ("250m", 250),
        ("0.5", 500),
        (".5", 500),
        ("1.", 1000),
        ("0.1m", 1),
        ("1n", 1),
        ("1000001u", 1001),
        ("1e3", 1_000_000),
        ("1E-3", 1),
        ("5e-1", 500),
        ("1E", LARGEST),
        ("1k", 1_000_000),
        ("1Ki", 1_024_000),
        (" 2 ", 2000),
        (2, 2000),
        (0.5, 500),
        (1e-7, 1),
        (1e99, LARGEST),
        pytest.param(10**5000, LARGEST, id="longest"),
        ("1e999999999", LARGEST),
        ("1e-999999999", 1),
        ("0e999999999", 0),
        ("9" * 129, LARGEST),
        pytest.param("0" * 100_000 + "1m", 1, id="leading zeros"),
        pytest.param("+" + "0" * 100_000 + ".5", 500, id="leading zeros after a sign"),
        pytest.param("5e" + "0" * 100_000, 5000, id="zeros of an exponent"),
        pytest.param("5e-" + "0" * 100_000 + "1", 500, id="leading zeros of an exponent"),
        pytest.param("0." + "0" * 100_000 + "1", 1, id="zeros of a fraction"),
        pytest.param("1" + "0" * 100_000 + "e-100000", 1000, id="trailing zeros"),
        pytest.param("9" * 100_000, LARGEST, id="digits"),
        pytest.param("-" + "0" * 100_000, 0, id="less than nothing by its sign alone"),
        # Kubernetes reads 64 bits of an exponent, and uses 32 of them.
        ("1e4294967296", 1000),
        ("1e4294967293", 1),
        ("5e-4294967297", 500),
        ("1e9223372036854775807", 100),
    ],
)
def test_a_cpu_quantity_is_rounded_up_to_millicores(quantity, millis):
    assert cpu_millis(quantity) == millis


@pytest.mark.parametrize(
    ("quantity", "size"),
    [("128Mi", 134_217_728), ("1G", 10**9), ("1.5Ki", 1536), ("100m", 1), ("2e6", 2_000_000)],
)
def test_a_memory_quantity_is_rounded_up_to_bytes(quantity, size):
    assert memory_bytes(quantity) == size


@pytest.mark.parametrize(
    "quantity",
    [
        "",
        ".",
        "m",
        "+",
        "1 Gi",
        "1gi",
        "1mi",
        "1K",
        "0x10",
        "1e",
        "1e1.5",
        "1ee3",
        "--1",
        "1,5",
        "٣",
        "1\n2",
        "NaN",
        "Infinity",
        "1e9223372036854775808",
        "1e-9223372036854775809",
        pytest.param("1e" + "9" * 100_000, id="longest exponent"),
        pytest.param("0" * 100_000 + "x", id="longest"),
        float("nan"),
        float("inf"),
    ],
)
def test_nonsense_is_refused_with_examples_of_what_is_allowed(quantity):
    with pytest.raises(InputError, match="is no CPU quantity such as '500m'"):
        cpu_millis(quantity)


@pytest.mark.parametrize("quantity", [None, True, [], {}, b"1"])
def test_what_is_neither_text_nor_number_is_refused_by_its_type(quantity):
    with pytest.raises(InputError, match="must be a memory quantity, not "):
        memory_bytes(quantity)


@pytest.mark.parametrize("quantity", ["-1", "-0.001m", -1, pytest.param(-(10**5000), id="longest")])
def test_less_than_nothing_is_refused(quantity):
    with pytest.raises(InputError, match="negative"):
        cpu_millis(quantity)


@given(numbers, st.sampled_from(sorted(WORTH)))
def test_every_suffix_is_worth_what_kubernetes_says(number, suffix):
    exact = Fraction(Decimal(number)) * WORTH[suffix]

    assert memory_bytes(number + suffix) == min(math.ceil(exact), LARGEST)
    assert cpu_millis(number + suffix) == min(math.ceil(exact * 1000), LARGEST)


@given(
    st.integers(0, 300),
    st.from_regex(r"\A[0-9]{1,300}(\.[0-9]{0,300})?\Z"),
    st.one_of(st.sampled_from(sorted(WORTH)), st.integers(-400, 400).map("e{}".format)),
)
def test_a_text_of_any_length_is_worth_its_number(zeros, number, suffix):
    power = Fraction(10) ** int(suffix[1:]) if suffix.startswith("e") else WORTH[suffix]
    exact = Fraction(Decimal(number)) * power

    text = "0" * zeros + number + suffix

    assert cpu_millis(text) == min(math.ceil(exact * 1000), LARGEST)
    assert memory_bytes(text) == min(math.ceil(exact), LARGEST)


@given(numbers, st.integers(-30, 30), st.sampled_from("eE"))
def test_an_exponent_means_a_power_of_ten(number, exponent, letter):
    exact = Fraction(Decimal(f"{number}e{exponent}"))

    assert memory_bytes(f"{number}{letter}{exponent}") == min(math.ceil(exact), LARGEST)


@given(st.one_of(st.text(max_size=12), st.text("0123456789.eEmMkKiGn+-", max_size=12)))
def test_any_text_is_a_number_or_an_input_error(text):
    try:
        outcome = cpu_millis(text)
    except InputError as error:
        outcome = -1 if "\n" in str(error) else 0

    assert 0 <= outcome <= LARGEST
