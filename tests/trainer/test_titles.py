import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temper_core.profiles import matching
from temper_plugin_trainer.thread_tables import LONGEST_TITLE
from temper_plugin_trainer.titles import clean_title

WORDS = st.text("ab/.~=: -*1", max_size=40)


@pytest.mark.parametrize(
    ("title", "cleaned"),
    [
        ("/usr/sbin/mysqld --basedir=/usr/", "mysqld --basedir=usr"),
        ("java -cp /a/b.jar:/c/d/e.jar -I/usr/include/x", "java -cp b.jar:e.jar -Ix"),
        ("~/bin/serve ../data ./run ~bob/x", "serve data run x"),
        ("srv/app/bin/serve", "serve"),
        (
            "nginx: master process /usr/sbin/nginx -g daemon off;",
            "nginx: master process nginx -g daemon off;",
        ),
        ("postgres: 17/main: checkpointer ", "postgres: 17/main: checkpointer"),
    ],
)
def test_paths_are_cut_to_their_last_part(title, cleaned):
    assert clean_title(title) == cleaned


@pytest.mark.parametrize(
    ("title", "cleaned"),
    [
        ("serve --password hunter2 --port 80", "serve --password *** --port 80"),
        ("serve --api-key=abc -Dauth.token=xyz", "serve --api-key=*** -Dauth.token=***"),
        ("redis-server --requirepass hunter2 *:6379", "redis-server --requirepass *** *:6379"),
        ("mysql -phunter2 -p3306 MYSQL_PWD=x --pw x", "mysql -p*** -p3306 MYSQL_PWD=*** --pw ***"),
        (
            "curl --license-key x Authorization: Bearer abc",
            "curl --license-key *** Authorization: Bearer ***",
        ),
        ("serve --passive --passthrough x", "serve --passive --passthrough x"),
        ("serve --user=bob -u 3", "serve --user=*** -u 3"),
        ("serve https://bob:pw@shop.example/x?y", "serve https:***"),
        ("mail bob@shop.example", "mail ***"),
        ("postgres: app app 10.1.2.3(4123) SELECT", "postgres: app app ***(4123) SELECT"),
        ("serve 2001:db8::1", "serve ***"),
        ("serve shop-1 as shop-12", "serve *** as shop-12"),
    ],
)
def test_what_tells_who_or_where_is_hidden(title, cleaned):
    assert clean_title(title, host="shop-1") == cleaned


def test_the_own_machine_is_no_secret():
    title = "redis-server 127.0.0.1:6379 0.0.0.0:80"

    assert clean_title(title) == title


@settings(max_examples=100)
@given(WORDS)
def test_what_is_clean_stays_as_it_is(title):
    cleaned = clean_title(title)

    assert clean_title(cleaned) == cleaned
    assert not any(word.startswith("/") for word in cleaned.split())


def test_a_title_made_to_hold_up_patterns_is_cleaned_in_no_time():
    pieces = ("a/", ".", "token", "1.", ":", "a@", "-a ", "a=", "/", " ")

    assert all(len(clean_title(piece * 100_000)) <= 1_024 for piece in pieces)


def test_a_table_keeps_of_a_title_what_matchers_look_at():
    assert LONGEST_TITLE == matching.LONGEST_TITLE
