#include "setup/venv_config.h"

#include <gtest/gtest.h>

namespace lockstep::setup {
namespace {

TEST(VenvConfig, TellsWhetherTheBaseIsSeen) {
  EXPECT_TRUE(sees_base_packages("home = /usr/bin\ninclude-system-site-packages = true\n"));
  EXPECT_TRUE(sees_base_packages("Include-System-Site-Packages=TRUE"));
  EXPECT_FALSE(sees_base_packages("include-system-site-packages = false\n"));
  EXPECT_FALSE(sees_base_packages("home = /include-system-site-packages = true\n"));
  EXPECT_FALSE(sees_base_packages(""));
}

TEST(VenvConfig, ChangesThatLineAlone) {
  EXPECT_EQ(with_base_packages("home = /a=b\ninclude-system-site-packages = false\nversion = 3\n"),
            "home = /a=b\nversion = 3\ninclude-system-site-packages = true\n");
  EXPECT_EQ(with_base_packages("home = /usr/bin"),
            "home = /usr/bin\ninclude-system-site-packages = true\n");
  EXPECT_TRUE(sees_base_packages(with_base_packages("home = x\n")));
}

}  // namespace
}  // namespace lockstep::setup
