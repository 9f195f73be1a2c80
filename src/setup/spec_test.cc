#include "setup/spec.h"

#include "base/error_testing.h"

#include <gtest/gtest.h>

namespace lockstep::setup {
namespace {

using Kind = Spec::Kind;
using Words = std::vector<std::string>;

Spec spec(std::string_view text) {
  auto parsed = parse_spec(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message);
  return parsed ? *parsed : Spec{};
}

std::string refusal(std::string_view text) {
  const auto parsed = parse_spec(text);
  if (parsed) return "taken";
  EXPECT_EQ(code_of(parsed), Errc::invalid_input);
  return parsed.error().message + "; " + parsed.error().hint;
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Words, AreSplitAsAShellDoes) {
  EXPECT_EQ(split_words("  a  b\tc\n").value(), (Words{"a", "b", "c"}));
  EXPECT_EQ(split_words("'a b' \"c \\\" d\" e\\ f ''").value(),
            (Words{"a b", "c \" d", "e f", ""}));
  EXPECT_EQ(split_words("a'b'\"c\"d '\\n' \"\\n\" \"\\\\\"").value(),
            (Words{"abcd", "\\n", "\\n", "\\"}));
  EXPECT_EQ(split_words("$HOME `id` $(id) * > ; #x").value(),
            (Words{"$HOME", "`id`", "$(id)", "*", ">", ";", "#x"}));
  for (const char* open : {"'a", "\"a", "a\\", "a '\"' \""})
    EXPECT_FALSE(split_words(open)) << open;
}

TEST(Specs, PlainNamesTakePipsArguments) {
  EXPECT_EQ(spec("transformers").args, Words{"transformers"});
  EXPECT_EQ(spec("torch --upgrade --extra-index-url https://x/whl/cu117").args,
            (Words{"torch", "--upgrade", "--extra-index-url", "https://x/whl/cu117"}));
  EXPECT_EQ(spec("  numpy>=1.2,<2 ").args, Words{"numpy>=1.2,<2"});
  EXPECT_EQ(spec("'x; python_version>\"3.8\"'").args, Words{"x; python_version>\"3.8\""});
  EXPECT_EQ(spec("x @ https://host/x.whl").args, (Words{"x", "@", "https://host/x.whl"}));
  EXPECT_EQ(spec("pip:a b==1 -U").args, (Words{"a", "b==1", "-U"}));
  EXPECT_EQ(spec("pip:https://host/x.tar.gz").args, Words{"https://host/x.tar.gz"});
  for (const char* text : {"numpy", "pip:numpy", "pip:-e git+https://x/y"})
    EXPECT_EQ(spec(text).kind, Kind::packages) << text;
}

TEST(Specs, PathsArePipsTrees) {
  EXPECT_EQ(spec("pip:./"), (Spec{.kind = Kind::tree, .text = "pip:./", .subject = "./"}));
  const Spec rich = spec("pip:'./my code[dev,x]' --no-deps");
  EXPECT_EQ(rich.kind, Kind::tree);
  EXPECT_EQ(rich.subject, "./my code");
  EXPECT_EQ(rich.extras, "[dev,x]");
  EXPECT_EQ(rich.args, Words{"--no-deps"});
  EXPECT_FALSE(rich.editable);
  const Spec edited = spec("pip:-e .[dev] -v");
  EXPECT_TRUE(edited.editable);
  EXPECT_EQ(edited.subject + edited.extras, ".[dev]");
  EXPECT_EQ(edited.args, Words{"-v"});
}

TEST(Specs, FilesAndFolders) {
  EXPECT_EQ(spec("reqs:./requirements.txt -q").kind, Kind::requirements);
  EXPECT_EQ(spec("reqs:./requirements.txt -q").args, Words{"-q"});
  EXPECT_EQ(spec("reqs:./").subject, "./");
  EXPECT_EQ(spec("reqs:'a b.txt'").subject, "a b.txt");
  EXPECT_EQ(spec("conda:env.yml").kind, Kind::conda);
  EXPECT_EQ(spec("local:~/lib").kind, Kind::local);
  EXPECT_EQ(spec("wheel:../dist/x-1-py3-none-any.whl").subject, "../dist/x-1-py3-none-any.whl");
  EXPECT_TRUE(is_in_project(spec("local:src")));
  EXPECT_FALSE(is_in_project(spec("reqs:/srv/r.txt")));
}

TEST(Specs, RepositoriesAndTheirRefs) {
  const auto git = [](std::string_view text) {
    const Spec parsed = spec(text);
    EXPECT_EQ(parsed.kind, Kind::git) << text;
    return parsed.subject + " " + parsed.ref;
  };
  EXPECT_EQ(git("git:https://github.com/a/b.git@v1.2"), "https://github.com/a/b.git v1.2");
  EXPECT_EQ(git("git:https://github.com/a/b"), "https://github.com/a/b ");
  EXPECT_EQ(git("git:https://me@host/a/b@feature/x"), "https://me@host/a/b feature/x");
  EXPECT_EQ(git("git:https://me@host/a/b"), "https://me@host/a/b ");
  EXPECT_EQ(git("git:git@github.com:a/b.git@main"), "ssh://git@github.com/a/b.git main");
  EXPECT_EQ(git("git:git@github.com:a/b.git"), "ssh://git@github.com/a/b.git ");
  EXPECT_EQ(git("git:/srv/b.git@main"), "file:///srv/b.git main");
  EXPECT_EQ(git("git:https://h/a@v1#subdirectory=x"), "https://h/a v1");
  EXPECT_EQ(spec("git:https://h/a@v1#subdirectory=x").extras, "#subdirectory=x");
  EXPECT_EQ(git("git:git+ssh://git@h/b@c"), "ssh://git@h/b c");
}

TEST(Specs, RefusalsNameTheSpecAndWhatThereIs) {
  EXPECT_TRUE(has(refusal("npm:left-pad"), "'npm:left-pad' has the unknown prefix npm:"));
  EXPECT_TRUE(has(refusal("npm:left-pad"), "pip:./, pip:NAME, reqs:FILE, conda:FILE"));
  EXPECT_TRUE(has(refusal("https://host/x.whl"), "write pip:URL"));
  EXPECT_TRUE(has(refusal("./"), "write pip:PATH"));
  EXPECT_TRUE(has(refusal("-U torch"), "does not begin with a package's name"));
  EXPECT_TRUE(has(refusal("torch 'x"), "ends inside of quotes"));
  EXPECT_TRUE(has(refusal("pip:../other"), "leaves the project"));
  EXPECT_TRUE(has(refusal("reqs:a/../../r.txt"), "leaves the project"));
  EXPECT_TRUE(has(refusal("local:my code"), "put a path with spaces into quotes"));
  EXPECT_TRUE(has(refusal("wheel:x.tar.gz"), "is not a wheel"));
  EXPECT_TRUE(has(refusal("git:nothing"), "is not the URL"));
  EXPECT_TRUE(has(refusal("git:https://host"), "names no repository"));
  EXPECT_TRUE(has(refusal("git:https://h/a@"), "no ref"));
  EXPECT_TRUE(has(refusal("git:https://h/a@--upload-pack=x"), "no ref"));
  for (const char* nothing : {"", "  ", "pip:", "reqs:", "conda: ", "git:", "local:", "wheel:"})
    EXPECT_NE(refusal(nothing), "taken") << nothing;
  EXPECT_NE(refusal(std::string_view("a\0b", 3)), "taken");
  EXPECT_TRUE(has(refusal("reqs:\xff.txt"), "is not UTF-8"));
  EXPECT_NE(refusal(std::string(kLongestSpec + 1, 'a')), "taken");
  EXPECT_FALSE(parse_specs(Words(kMostSpecs + 1, "a")));
}

}  // namespace
}  // namespace lockstep::setup
