#include "setup/requirements.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lockstep::setup {
namespace {

using Kind = Reference::Kind;

std::string paths(const std::vector<Reference>& references) {
  std::string text;
  for (const Reference& each : references)
    text += (each.kind == Kind::requirements ? "R:" : "C:") + each.path + " ";
  return text;
}

TEST(Requirements, LeadToOtherFiles) {
  EXPECT_EQ(paths(references_in_file("-r base.txt\n-c ../limits.txt\n--requirement=a.txt\n"
                                     "--constraint b.txt\n-rc.txt\r\n  -r 'd e.txt' # why\n")),
            "R:base.txt R:../limits.txt R:a.txt R:b.txt R:c.txt R:d e.txt ");
  EXPECT_EQ(paths(references_in_file("-e ./lib\n./wheel.whl\n-e .[dev]\nx @ file:///srv/x\n"
                                     "--find-links wheels\n")),
            "C:./lib C:./wheel.whl C:. C:/srv/x C:wheels ");
  EXPECT_EQ(paths(references_in_file("# -r no.txt\n-r https://host/r.txt\n--index-url https://x\n"
                                     "git+https://host/y@z\n-e git+ssh://host/y\n")),
            "");
  EXPECT_EQ(paths(references_in_file("-r \\\n  long.txt\n'open -r x.txt")), "R:long.txt R:x.txt ");
}

TEST(Requirements, OfACondaEnvironment) {
  const auto found = references_in_file(
      "dependencies:\n  - python=3.11\n  - pip:\n    - -r requirements.txt\n    - -e .\n");
  EXPECT_TRUE(std::count(found.begin(), found.end(),
                         Reference{Kind::requirements, "requirements.txt"}) == 1);
  EXPECT_TRUE(std::count(found.begin(), found.end(), Reference{Kind::content, "."}) == 1);
}

TEST(Requirements, OfArguments) {
  EXPECT_EQ(paths(references_in_arguments(
                {"./a", "-c", "c.txt", "--upgrade", "--no-index", "-fw", "https://x/y.whl", "-r"})),
            "C:./a R:c.txt C:w ");
}

}  // namespace
}  // namespace lockstep::setup
