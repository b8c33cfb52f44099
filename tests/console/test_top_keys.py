import pytest
from hypothesis import given
from hypothesis import strategies as st

from temper_plugin_console.top.keys import KeyReader
from temper_plugin_console.top.view import PANES, View, after_key


def pressed(*keys, view=None):
    view = view or View()
    for key in keys:
        view = after_key(view, key)
    return view


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"cwn", ["c", "w", "n"]),
        (b"\t\r\x7f\x08\x15", ["tab", "enter", "backspace", "backspace", "kill"]),
        (b"\x1b[A\x1bOB\x1b[5~\x1b[6~", ["up", "down", "page-up", "page-down"]),
        (b"\x1b[H\x1b[F\x1b[Z", ["home", "end", "back-tab"]),
        (b"\x1b", ["escape"]),
        (b"\x1bq", ["escape", "q"]),
        ("ü字".encode(), ["ü", "字"]),
        (b"\x1b[1;5C\x1b[200~x\x1b[201~", ["x"]),
        (b"\x00\x01\x02", []),
        (b"\x1b[<0;12;5M\x1b[<0;12;5m", ["click 12 5"]),
        (b"\x1b[<16;3;4M", ["click 3 4"]),
        (b"\x1b[<64;1;1M\x1b[<65;1;1M", ["wheel-up", "wheel-down"]),
        (b"\x1b[<2;1;1M\x1b[<32;1;1M\x1b[<;;M", []),
        (b"\xff", ["\N{REPLACEMENT CHARACTER}"]),
        (b"\x1b[" + b"1" * 40 + b"Ax", []),
    ],
)
def test_bytes_of_a_terminal_are_read_as_keys(data, keys):
    assert KeyReader().keys(data) == keys


@pytest.mark.parametrize(
    ("data", "keys"), [(b"\x1b[5~c", ["page-up", "c"]), ("a字c".encode(), ["a", "字", "c"])]
)
def test_a_key_that_comes_in_two_parts_is_one_key(data, keys):
    for cut in range(2, len(data)):
        reader = KeyReader()

        assert reader.keys(data[:cut]) + reader.keys(data[cut:]) == keys


@given(st.lists(st.binary(max_size=30)))
def test_no_bytes_upset_the_reader_or_the_view(chunks):
    reader, view = KeyReader(), View()

    for chunk in chunks:
        view = pressed(*reader.keys(chunk), view=view)

    assert view.pane in PANES
    assert view.first >= 0
    assert view.filter.isprintable()


def test_panes_are_chosen_by_number_and_in_turn():
    assert [pressed(str(number)).pane for number in range(1, 6)] == list(PANES)
    assert pressed("5", "tab").pane == PANES[0]
    assert pressed("1", "back-tab").pane == PANES[4]
    assert pressed("9") == View()


@pytest.mark.parametrize(("key", "order"), [("c", "cpu"), ("w", "wait"), ("n", "name")])
def test_a_letter_sorts_and_goes_to_the_top(key, order):
    view = pressed("down", key)

    assert (view.sort, view.first) == (order, 0)


def test_a_filter_holds_while_it_is_typed_and_after_enter():
    typing = pressed("/", *"shoq", "backspace", "p")
    kept = pressed("enter", view=typing)

    assert (typing.typed, typing.filter) == ("shop", "shop")
    assert (kept.typed, kept.filter) == (None, "shop")


def test_while_a_filter_is_typed_letters_are_letters():
    view = pressed("/", "q", "w", " ")

    assert not view.is_ended
    assert view.filter == "qw "


def test_escape_takes_a_filter_away():
    assert pressed("/", "x", "escape").filter == ""
    assert pressed("/", "x", "enter", "escape").filter == ""
    assert pressed("/", *"abc", "kill").filter == ""


def test_a_filter_has_an_end():
    assert len(pressed("/", *"x" * 500).filter) == 64


def test_space_pauses_and_goes_on():
    assert pressed(" ").is_paused
    assert not pressed(" ", " ").is_paused


def test_help_comes_and_goes():
    assert pressed("?").is_helping
    assert not pressed("h", "escape").is_helping


def test_q_ends():
    assert pressed("q").is_ended


def test_scrolling_stops_at_the_top():
    assert pressed("down", "down", "up").first == 1
    assert pressed("up", "page-up", "k").first == 0
    assert pressed("page-down", "home").first == 0


def test_a_scroll_of_the_wheel_is_three_rows():
    assert pressed("wheel-down", "wheel-down", "wheel-up").first == 3


def test_t_shows_the_threads_as_a_tree_and_back():
    view = pressed("2", "t")

    assert (view.pane, view.is_tree) == ("threads", True)
    assert not pressed("t", "t").is_tree


def test_all_groups_fold_and_one_is_turned_back():
    folded = pressed("t", "-")
    turned = folded.turned(("shop/web",))

    assert folded.is_folded(("shop/web",))
    assert not turned.is_folded(("shop/web",))
    assert turned.is_folded(("shop/db",))
    assert not pressed("+", view=turned).is_folded(("shop/db",))
