#include "slurm/old_script.h"

#include "slurm/sbatch_file.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

Result<std::string> made(const std::string& text, int spares = 0) {
  const SbatchFile file = read_sbatch_file(text);
  const auto plan = plan_job({.settings = file.settings,
                              .spares = spares,
                              .folder = "/work",
                              .name = "old.slurm",
                              .old_script = true});
  if (!plan) return Failure(plan.error());
  return old_script_text(
      *plan, text, {.version = "1", .binary = "/f/lockstep", .folder = "/f", .command = "x\ny"});
}

TEST(OldScriptTest, WhatIsAScript) {
  EXPECT_TRUE(is_batch_script("a.slurm", "#!/bin/bash\necho\n"));
  EXPECT_TRUE(is_batch_script("a", "#!/usr/bin/env bash\n"));
  EXPECT_TRUE(is_batch_script("a.sh", "#SBATCH -N2\nsrun x\n"));
  EXPECT_TRUE(is_batch_script("a", "#!/usr/bin/python3\n#SBATCH -N2\n"));
  EXPECT_TRUE(is_batch_script("a", "#!/bin/tcsh\n"));
  EXPECT_FALSE(is_batch_script("a.py", "#!/bin/bash\n#SBATCH -N2\n"));
  EXPECT_FALSE(is_batch_script("a", "#!/usr/bin/env python3\nprint(1)\n"));
  EXPECT_FALSE(is_batch_script("a", std::string("#!/bin/bash\n\0", 13)));
  EXPECT_FALSE(is_batch_script("a", "print(1)\n"));
}

TEST(OldScriptTest, TheUsersLinesStayAndOursStandBetween) {
  const std::string head = "#!/bin/bash -l\n# mine\n#SBATCH   --nodes=2   # two\n#SBATCH -n 4\n\n";
  const std::string body = "set -e\n#SBATCH -p late\n\tsrun torchrun t.py\t\n";
  const auto text = made(head + body, 1);
  ASSERT_TRUE(text) << text.error().message;
  ASSERT_TRUE(text->starts_with(head));
  ASSERT_TRUE(text->ends_with("\n\n" + body));
  // Lockstep's lines come last, so they count. Unchanged settings are not repeated.
  const SbatchFile file = read_sbatch_file(*text);
  EXPECT_EQ(find_setting(file.settings, "nodes")->value, "3");
  EXPECT_EQ(find_setting(file.settings, "ntasks")->value, "6");
  EXPECT_EQ(find_setting(file.settings, "output")->value, "/work/slurm-%j.out");
  EXPECT_EQ(find_setting(file.settings, "job-name")->value, "old.slurm");
  EXPECT_EQ(find_setting(file.settings, "partition"), nullptr);
  EXPECT_EQ(find_setting(file.settings, "ntasks-per-node"), nullptr);
  EXPECT_TRUE(file.problems.empty());
  EXPECT_NE(text->find("exec /f/lockstep slurm-batch --folder /f --script -- \"$0\" \"$@\"\n"),
            std::string::npos);
  EXPECT_NE(text->find("# Added by lockstep 1 for: x\\x0ay\n"), std::string::npos);
}

TEST(OldScriptTest, ATaskOfAnArrayHasAFolderOfItsOwn) {
  const std::string text = "#!/bin/sh\n#SBATCH --array=1-3\n#SBATCH --output=all.txt\necho\n";
  const JobWish wish{.settings = read_sbatch_file(text).settings,
                     .folder = "/work",
                     .name = "old",
                     .old_script = true,
                     .array = "1-3"};
  const auto plan = plan_job(wish);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->notes.size(), 1U);
  EXPECT_NE(plan->notes[0].find("all tasks of the array write to /work/all.txt"),
            std::string::npos);
  const auto made = old_script_text(
      *plan, text,
      {.version = "1", .binary = "/f/b", .folder = "/f", .has_rows = true, .command = "x"});
  ASSERT_TRUE(made);
  const std::string_view added =
      "[ \"${LOCKSTEP_SLURM_FOLDER-}\" = /f/rows/\"$SLURM_ARRAY_TASK_ID\" ] ||\n"
      "  exec /f/b slurm-batch --folder /f/rows/\"$SLURM_ARRAY_TASK_ID\" --script -- \"$0\" "
      "\"$@\"\n. /f/shell\n";
  EXPECT_NE(made->find(added), std::string::npos) << *made;
}

TEST(OldScriptTest, ScriptsOfLittle) {
  for (const char* text : {"#!/bin/sh", "#!/bin/sh\n", "#!/bin/sh\n#SBATCH -N1", "#!/bin/sh\necho"})
    EXPECT_TRUE(made(text)) << text;
  EXPECT_EQ(made("#!/bin/tcsh\n#SBATCH -N1\n").error().message,
            "the script begins with '#!/bin/tcsh', which is not a shell like sh or bash");
}

TEST(OldScriptTest, SparesNeedANumberOfNodes) {
  EXPECT_TRUE(made("#!/bin/sh\n#SBATCH -n 8 --ntasks-per-node=4\ntrue\n", 1));
  EXPECT_TRUE(made("#!/bin/sh\ntrue\n", 1));
  EXPECT_FALSE(made("#!/bin/sh\n#SBATCH -n 8\ntrue\n", 1));
  EXPECT_TRUE(made("#!/bin/sh\n#SBATCH -n 8\ntrue\n"));
  EXPECT_FALSE(made("#!/bin/sh\n#SBATCH -N2 --gpus=3\ntrue\n", 1));
  EXPECT_FALSE(made("#!/bin/sh\n#SBATCH --array=1-4\ntrue\n"));
}

TEST(OldScriptTest, ASpareHasAsManyGpusAsAnyOtherNode) {
  const auto gpus = [](const std::string& value) {
    const auto text = made("#!/bin/sh\n#SBATCH -N2 --gpus=" + value + "\ntrue\n", 1);
    return text ? find_setting(read_sbatch_file(*text).settings, "gpus")->value : "refused";
  };
  EXPECT_EQ(gpus("16"), "24");
  EXPECT_EQ(gpus("a100:16"), "a100:24");
  EXPECT_EQ(gpus("a100=16"), "a100=24");
  EXPECT_EQ(gpus("a100:2,h100:2"), "refused");
}

TEST(OldScriptTest, TheStandInsKeepEveryArgument) {
  bool found = false;
  for (const FolderFile& file : stand_in_files("/a b/lockstep"))
    if (file.name == "bin/srun") {
      found = true;
      EXPECT_EQ(file.text, "#!/bin/sh\nexec '/a b/lockstep' slurm-launch srun \"$@\"\n");
    }
  EXPECT_TRUE(found);
}

TEST(OldScriptTest, SettingsComeBack) {
  const LaunchSettings settings{.spares = 2,
                                .min_nodes = 3,
                                .carry = Carry::always,
                                .run = {"--max-restarts=3", "a \"b\"\n"}};
  EXPECT_EQ(settings_from_text(settings_text(settings)).value(), settings);
  EXPECT_FALSE(settings_from_text("[]"));
  EXPECT_EQ(settings_from_text("{\"spares\": -7, \"run\": [1, \"x\"]}").value(),
            (LaunchSettings{.run = {"x"}}));
}

}  // namespace
}  // namespace lockstep::slurm
