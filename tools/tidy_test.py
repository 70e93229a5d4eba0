#!/usr/bin/env python3
"""Plants one violation after another in a small tree and checks that tidy.py finds just that."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import tidy  # noqa: E402

ARCHITECTURE = """# Architecture

| room | may include |
|---|---|
| every room | grebe/error.h |
| base | (std only) |
| store | base |
| parquet | base store grebe/explain.h |
| engine | all rooms |
| cli | include/grebe only |
| testing tests | all rooms |
"""


def header(body=""):
    return "#pragma once\n\n" + body


def function_of(lines, name="Long"):
    """A function whose first and last line are `lines` apart, both counted."""
    return f"int {name}(int x) {{\n" + "  ++x;\n" * (lines - 3) + "  return x;\n}\n"


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("ARCHITECTURE.md", ARCHITECTURE)
        self.write("src/base/CMakeLists.txt", "grebe_room(base SOURCES a.cc)\n")
        self.write("src/store/CMakeLists.txt",
                   "grebe_room(store SOURCES b.cc)\ngrebe_test(s SOURCES b_test.cc)\n")
        self.write("src/parquet/CMakeLists.txt", "grebe_room(parquet SOURCES p.cc)\n")
        self.write("cli/CMakeLists.txt", "add_executable(grebe_cli main.cc)\n")
        self.write("include/grebe/error.h", header())
        self.write("include/grebe/engine.h", header())

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def findings(self):
        return tidy.Tidy(self.root).run()

    def assert_clean(self):
        self.assertEqual(self.findings(), [])

    def assert_found(self, path, *words):
        found = self.findings()
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path + ":"), found)
        for word in words:
            self.assertIn(word, found[0])

    def test_a_clean_tree_has_no_findings(self):
        self.write("src/base/a.cc", '#include "base/a.h"\n#include "grebe/error.h"\n')
        self.write("src/base/a.h", header("int F();\n"))
        self.assert_clean()

    # Includes.

    def test_a_room_may_not_include_one_above_it(self):
        self.write("src/base/a.cc", '#include "store/b.h"\n')
        self.assert_found("src/base/a.cc:1", "base may not include store/b.h")

    def test_a_room_includes_what_its_row_names(self):
        self.write("src/store/b.cc", '#include "base/a.h"\n#include "store/c.h"\n')
        self.write("src/parquet/p.cc", '#include "grebe/explain.h"\n')
        self.assert_clean()

    def test_a_public_header_is_for_the_engine_unless_every_room_may(self):
        self.write("src/store/b.cc", '#include "grebe/engine.h"\n')
        self.assert_found("src/store/b.cc:1", "store may not include grebe/engine.h")

    def test_the_command_line_includes_the_public_api_only(self):
        self.write("cli/main.cc", '#include "grebe/engine.h"\n#include "store/b.h"\n')
        self.assert_found("cli/main.cc:2", "cli may not include store/b.h")

    def test_an_unknown_room_is_named(self):
        self.write("src/attic/CMakeLists.txt", "z.cc\n")
        self.write("src/attic/z.cc", '#include "base/a.h"\n')
        self.assert_found("src/attic/z.cc:1", "attic is not in ARCHITECTURE.md")

    def test_the_library_may_not_include_testing(self):
        self.write("src/store/b.cc", '#include "testing/fake.h"\n')
        self.assert_found("src/store/b.cc:1", "only tests include testing/")
        self.write("src/store/b.cc", "")
        self.write("src/store/b_test.cc", '#include "testing/fake.h"\n')
        self.assert_clean()

    def test_confined_dependencies(self):
        self.write("src/parquet/p.cc", "#include <parquet/file_reader.h>\n")
        self.write("src/store/b.cc", "#include <arrow/filesystem/s3fs.h>\n#include <curl/curl.h>\n")
        self.assert_clean()
        for include in ("parquet/types.h", "nlohmann/json.hpp"):
            self.write("src/store/b.cc", f"#include <{include}>\n")
            self.assert_found("src/store/b.cc:1", include)
        self.write("src/store/b.cc", "")
        self.write("src/parquet/p.cc", "#include <arrow/filesystem/api.h>\n")
        self.assert_found("src/parquet/p.cc:1", "src/store/ only")

    def test_a_header_of_ours_may_not_hide_one_of_libparquet(self):
        self.write("src/parquet/schema.h", header())
        self.assert_clean()
        self.write(".venv/lib/python3.11/site-packages/pyarrow/include/parquet/schema.h", "")
        self.assert_found("src/parquet/schema.h:1", "libparquet has a header of this name")

    # Sizes.

    def test_file_length(self):
        self.write("src/base/a.cc", "int x;\n" * 800)
        self.assert_clean()
        self.write("src/base/a.cc", "int x;\n" * 801)
        self.assert_found("src/base/a.cc:1", "801, at most 800")

    def test_header_length(self):
        self.write("src/base/a.h", header("int x;\n" * 248))
        self.assert_clean()
        self.write("src/base/a.h", header("int x;\n" * 249))
        self.assert_found("src/base/a.h:1", "251, at most 250")

    def test_function_length(self):
        self.write("src/base/a.cc", "namespace grebe {\n" + function_of(70) + "}\n")
        self.assert_clean()
        self.write("src/base/a.cc", "namespace grebe {\n" + function_of(71) + "}\n")
        self.assert_found("src/base/a.cc:2", "function Long: 71, at most 70")

    def test_function_length_in_many_forms(self):
        body = "{\n" + "  f();\n" * 75 + "}\n"
        forms = {
            "A::A": "A::A(int x) : x_(x), y_{x} " + body,
            "operator=": "struct B {\nB& operator=(const B& o) noexcept " + body + "};\n",
            "Get": "template <class T, class U = std::vector<T>>\nauto Get(T t) -> int " + body,
            "TEST(A,B)": "TEST(A, B) " + body,
            "~C": "class C : public D {\n public:\n  ~C() override " + body + "};\n",
            "E::F": "[[nodiscard]] std::map<int, int> E::F(std::function<void(int)> f) const "
                    + body,
        }
        for name, text in forms.items():
            with self.subTest(name):
                self.write("src/base/a.cc", text)
                self.assert_found("src/base/a.cc", f"function {name}:")

    def test_what_is_no_function_is_not_measured_as_one(self):
        long = "  1,\n" * 90
        for text in (f"const int kTable[] = {{\n{long}}};\n",
                     f"enum class E : int {{\n{long.replace('1', 'a')}}};\n",
                     f"class X {{\n{'  int a;' * 1}\n" + "  int b();\n" * 90 + "};\n",
                     f"// {{ one brace in a comment\nconst char* s = \"{{(\";\nint c = '{{';\n"
                     + "int x = 1'000'000;\n" + function_of(20) * 5):
            self.write("src/base/a.cc", text)
            self.assert_clean()

    def test_api_size(self):
        for i in range(11):
            self.write(f"include/grebe/h{i}.h", header())
        self.assert_found("include/grebe:1", "13 headers, at most 12")

    def test_api_lines(self):
        for i in range(10):
            self.write(f"include/grebe/h{i}.h", header("int x;\n" * 248))
        self.write("include/grebe/error.h", header("int x;\n"))
        self.assert_found("include/grebe:1", "lines, at most 2500")

    # The ratchet.

    def test_the_list_grants_what_it_names_and_no_more(self):
        self.write("src/base/a.cc", function_of(80))
        self.write("tools/tidy_allow.txt", "function src/base/a.cc:Long 80  # a table of cases\n")
        self.assert_clean()
        self.write("src/base/a.cc", function_of(81))
        self.assert_found("src/base/a.cc:1", "81, at most 80")

    def test_the_list_may_only_shrink(self):
        self.write("src/base/a.cc", function_of(75))
        self.write("tools/tidy_allow.txt", "function src/base/a.cc:Long 80\n")
        self.assert_found("tools/tidy_allow.txt:1", "lower to 75")
        self.write("src/base/a.cc", function_of(70))
        self.assert_found("tools/tidy_allow.txt:1", "remove: function src/base/a.cc:Long")

    # Banned calls, form.

    def test_the_library_never_prints_exits_or_asserts(self):
        for call in ('printf("x");', 'std::fprintf(f, "x");', "std::cout << 1;", "std::cerr << 1;",
                     "abort();", "std::abort();", "exit(1);", "::exit(1);", "assert(x);",
                     "DCHECK_EQ(a, b);", "x.ValueOrDie();", "int r = rand();", "std::rand();",
                     "std::terminate();"):
            with self.subTest(call):
                self.write("src/base/a.cc", f"void F() {{ {call} }}\n")
                self.assert_found("src/base/a.cc:1")

    def test_calls_that_only_look_banned(self):
        self.write("src/base/a.cc",
                   "// printf(x); exit(1);\nstatic_assert(true);\nint strand(int a);\n"
                   "void F() { snprintf(b, 1, f); pool.exit(); my_abort(); std::exit_code(2); }\n"
                   'const char* s = "std::cout << exit(1)";\n')
        self.assert_clean()

    def test_the_command_line_may_print(self):
        self.write("cli/main.cc", "int main() { std::cout << 1; return 0; }\n")
        self.assert_clean()

    def test_a_test_may_not_sleep_unless_listed(self):
        self.write("src/store/b_test.cc", "void F() { std::this_thread::sleep_for(x); }\n")
        self.assert_found("src/store/b_test.cc:1", "calls in a test, sleep: 1")
        self.write("tools/tidy_allow.txt", "sleep src/store/b_test.cc 1\n")
        self.assert_clean()

    def test_form(self):
        for path, text, word in (
                ("src/base/a.h", "int x;\n", "#pragma once"),
                ("src/base/a.cc", "int x; \n", "trailing blank"),
                ("src/base/a.cc", "\tint x;\n", "tab"),
                ("src/base/a.cc", "int x;", "no newline"),
                ("src/base/a.cc", "//" + "x" * 99 + "\n", "101 columns"),
                ("tools/x.py", "#" + "x" * 100 + "\n", "101 columns"),
                ("src/base/dead.cc", "int x;\n", "no CMakeLists.txt names"),
                ("docs/a.md", "# A\n\n[b](b.md)\n", "dead link b.md"),
                ("docs/a.md", "# A\n\n# B\n", "one title")):
            with self.subTest(word):
                self.write(path, text)
                self.assert_found(path, word)
                (self.root / path).unlink()

    def test_failpoints_are_those_that_testing_md_lists(self):
        self.write("src/base/a.cc", 'void F() { GREBE_FAILPOINT("create.x"); }\n')
        self.assert_found("src/base/a.cc:1", "create.x is not listed")
        self.write("TESTING.md", "# Testing\n\n| `create.x` | before x |\n")
        self.assert_clean()
        self.write("src/base/a.cc", "")
        self.assert_found("TESTING.md:1", "no failpoint create.x")

    def test_the_exit_code_says_it(self):
        command = [sys.executable, str(HERE / "tidy.py"), "--root", str(self.root)]
        self.assertEqual(subprocess.run(command, capture_output=True).returncode, 0)
        self.write("src/base/a.cc", "int x; \n")
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "src/base/a.cc:1: trailing blank\n")


if __name__ == "__main__":
    unittest.main()
