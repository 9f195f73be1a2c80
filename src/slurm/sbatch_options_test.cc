#include "slurm/sbatch_options.h"

#include "base/text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace lockstep::slurm {
namespace {

// Prints the settings and the number of words read: "--nodes=2 --hold | 3".
std::string read(std::string_view line, UnknownOptions unknown = UnknownOptions::refuse) {
  std::vector<std::string> words;
  for (std::string& each : split(line, ' '))
    if (!each.empty()) words.push_back(std::move(each));
  const auto settings = read_settings(words, unknown);
  if (!settings) return "refused: " + settings.error().message + "; " + settings.error().hint;
  std::string text;
  for (const Setting& each : settings->settings)
    text += word_of(each) + (each.known ? " " : "? ");
  return text + "| " + std::to_string(settings->words);
}

TEST(SbatchOptions, AreSortedAndHaveEachLetterOnce) {
  const auto options = sbatch_options();
  EXPECT_TRUE(std::is_sorted(options.begin(), options.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
  std::set<char> letters;
  for (const SbatchOption& each : options)
    EXPECT_TRUE(each.letter == 0 || letters.insert(each.letter).second) << each.letter;
}

TEST(SbatchOptions, ReadsEverySpellingThatGetoptTakes) {
  EXPECT_EQ(read("-N2"), "--nodes=2 | 1");
  EXPECT_EQ(read("-N 2"), "--nodes=2 | 2");
  EXPECT_EQ(read("--nodes=2"), "--nodes=2 | 1");
  EXPECT_EQ(read("--nodes 2"), "--nodes=2 | 2");
  EXPECT_EQ(read("--nodes="), "--nodes= | 1");
  EXPECT_EQ(read("--deadl=3 --part gpu"), "--deadline=3 --partition=gpu | 3");
  EXPECT_EQ(read("-HOn4"), "--hold --overcommit --ntasks=4 | 1");
  EXPECT_EQ(read("-x -n1"), "--exclude=-n1 | 2");
  EXPECT_EQ(read("--tasks-per-node 8 --cluster=a"), "--ntasks-per-node=8 --clusters=a | 3");
}

TEST(SbatchOptions, AnOptionalValueIsNeverAWordOfItsOwn) {
  EXPECT_EQ(read("--exclusive user"), "--exclusive | 1");
  EXPECT_EQ(read("--exclusive=user --nice --nice=3"), "--exclusive=user --nice --nice=3 | 3");
  EXPECT_EQ(read("-W 60"), "--wait | 1");
  EXPECT_EQ(read("-k off"), "--no-kill | 1");
  EXPECT_EQ(read("-koff --no-kill=off"), "--no-kill=off --no-kill=off | 2");
  EXPECT_EQ(read("--requeue --requeue=expedite"), "--requeue --requeue=expedite | 2");
  EXPECT_EQ(read("--get-user-env=10L"), "--get-user-env=10L | 1");
}

TEST(SbatchOptions, StopsAtTheFirstWordThatIsNoOption) {
  EXPECT_EQ(read("-N2 train.sh -N3"), "--nodes=2 | 1");
  EXPECT_EQ(read("-N2 -- -N3"), "--nodes=2 | 2");
  EXPECT_EQ(read("- -N3"), "| 0");
  EXPECT_EQ(read(""), "| 0");
}

TEST(SbatchOptions, SaysWhatItCannotRead) {
  EXPECT_EQ(
      read("--node 2"),
      "refused: --node may stand for --nodefile, --nodelist, --nodes; write the option in full");
  EXPECT_EQ(read("--patition=gpu"),
            "refused: sbatch has no option --patition; did you mean --partition?");
  EXPECT_EQ(read("-Z"), "refused: sbatch has no option -Z; see man sbatch");
  EXPECT_EQ(read("--hold=1"),
            "refused: --hold takes no value, but is given '1'; write --hold alone");
  EXPECT_EQ(read("--nodes"), "refused: --nodes is given no value; write --nodes=VALUE");
  EXPECT_EQ(read("-N"), "refused: -N is given no value; write --nodes=VALUE");
  EXPECT_EQ(read("--=2"), "refused: sbatch has no option --; see man sbatch");
}

TEST(SbatchOptions, KeepsOptionsOfPluginsWhereAsked) {
  EXPECT_EQ(read("--container-image=x --container-writable"),
            "--container-image=x --container-writable | 2");
  EXPECT_EQ(read("--site 3 --other --site=4", UnknownOptions::keep),
            "--site=3? --other? --site=4? | 4");
  EXPECT_EQ(read("--site 3"), "refused: sbatch has no option --site; see man sbatch");
}

TEST(SbatchOptions, ReadsTheWordsOfSrun) {
  const std::vector<PlacedWord> words = {{"-lu"}, {"-K1"}, {"--wait"}, {"60"}, {"-N2"}, {"python"}};
  const auto read = read_srun_settings(words);
  std::string text;
  for (const Setting& each : read.settings)
    text += word_of(each) + " ";
  EXPECT_EQ(text, "--label --unbuffered --kill-on-bad-exit=1 --wait=60 --nodes=2 ");
  EXPECT_EQ(read.words, 5U);
  EXPECT_TRUE(read.problems.empty());
}

TEST(SbatchOptions, TheLastOneCounts) {
  const auto read = read_settings(std::vector<std::string>{"-N1", "-N2", "-n3"});
  EXPECT_EQ(find_setting(read->settings, "nodes")->value, "2");
  EXPECT_EQ(find_setting(read->settings, "time"), nullptr);
}

}  // namespace
}  // namespace lockstep::slurm
