#include "launchers/pdsh_words.h"

#include <gtest/gtest.h>

namespace lockstep::launchers {
namespace {

using Words = std::vector<std::string>;

PdshWords parsed(const Words& words) {
  auto pdsh = parse_pdsh(words);
  EXPECT_TRUE(pdsh) << pdsh.error().message;
  return pdsh.value_or(PdshWords{});
}

std::string error(const Words& words) {
  const auto pdsh = parse_pdsh(words);
  return pdsh ? "" : pdsh.error().message;
}

TEST(PdshWords, DeepspeedsCommandLineIsUnderstood) {
  const PdshWords pdsh =
      parsed({"-S", "-f", "1024", "-w", "worker-0,worker-1", "export A=\"b c\"; ", "cd /work;",
              "python", "-u", "--node_rank=%n", "train.py", "-S"});
  EXPECT_EQ(pdsh.hosts, (Words{"worker-0", "worker-1"}));
  EXPECT_TRUE(pdsh.largest_code);
  EXPECT_TRUE(pdsh.labels);
  EXPECT_FALSE(pdsh.fail_fast);
  EXPECT_EQ(pdsh_command(pdsh, 1, "me"),
            "export A=\"b c\";  cd /work; python -u --node_rank=1 train.py -S");
}

TEST(PdshWords, HostsMayBeRanges) {
  EXPECT_EQ(parsed({"-w", "n[1-3,07],b", "-x", "n2", "-w", "b", "hostname"}).hosts,
            (Words{"n1", "n3", "n07", "b"}));
  EXPECT_EQ(parsed({"-Nwa", "-lme", "x"}).hosts, (Words{"a"}));
  EXPECT_TRUE(parsed({"-Sk", "-w", "a", "x"}).fail_fast);
}

TEST(PdshWords, PercentsAreReplaced) {
  const PdshWords pdsh = parsed({"-w", "me@a", "-l", "you", "%h %n %u %% %x 100%"});
  EXPECT_EQ(pdsh_command(pdsh, 0, "i"), "a 0 you % %x 100%");
  EXPECT_EQ(pdsh_command(parsed({"-w", "a", "%u"}), 0, "i"), "i");
}

TEST(PdshWords, WhatIsNotUnderstoodIsNamed) {
  EXPECT_EQ(error({"hostname"}), "no host is given");
  EXPECT_EQ(error({"-w", "a"}), "no command is given");
  EXPECT_EQ(error({"-w"}), "-w needs a value");
  EXPECT_EQ(error({"-w", "a", "-x", "a", "c"}), "no host is left");
  EXPECT_EQ(error({"-q", "-w", "a", "c"}), "option -q is not known");
  EXPECT_EQ(error({"-u", "5", "-w", "a", "c"}), "option -u is not known");
  EXPECT_EQ(error({"-R", "rsh", "-w", "a", "c"}), "-R rsh: hosts are reached with ssh");
  EXPECT_TRUE(error({"-w", "a[", "c"}).starts_with("-w: ")) << error({"-w", "a[", "c"});
  EXPECT_TRUE(parsed({"-V"}).asks_version);
}

TEST(PdshWords, TheWayComesFromTheArgumentsOfSsh) {
  EXPECT_EQ(pdsh_way("             -p 2222").port, 2222);
  EXPECT_TRUE(pdsh_way("             -p 2222").left.empty());
  const PdshWay way = pdsh_way("-o A=b -p2200 -i /keys/a -Jgate\t-x");
  EXPECT_EQ(way.port, 2200);
  EXPECT_EQ(way.key, "/keys/a");
  EXPECT_EQ(way.jump, "gate");
  EXPECT_EQ(way.left, (Words{"-o", "A=b", "-x"}));
  EXPECT_EQ(pdsh_way("").port, std::nullopt);
  EXPECT_EQ(pdsh_way("-p").left, (Words{"-p "}));
  EXPECT_EQ(pdsh_way("-p x").left, (Words{"-p x"}));
}

TEST(PdshWords, InAnAllocationSrunReachesTheNodes) {
  const Words argv = pdsh_over_srun(parsed({"-w", "n2,n1", "echo %n 'x'"}), "me");
  EXPECT_EQ(argv[0], "srun");
  EXPECT_EQ(argv[2], "--nodes=2");
  EXPECT_EQ(argv[5], "--kill-on-bad-exit=0");
  EXPECT_EQ(pdsh_over_srun(parsed({"-k", "-w", "n", "x"}), "me")[5], "--kill-on-bad-exit=1");
  EXPECT_EQ(argv[7], "--nodelist=n2,n1");
  EXPECT_NE(argv.back().find("n2) command='echo 0 '\\''x'\\''' ;;\n"), std::string::npos)
      << argv.back();
  EXPECT_NE(argv.back().find("n1) command='echo 1 "), std::string::npos) << argv.back();
}

}  // namespace
}  // namespace lockstep::launchers
