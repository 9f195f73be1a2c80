#include "looks/doing.h"

#include "looks/looks_testing.h"
#include "looks/place.h"

#include <gtest/gtest.h>

namespace lockstep::looks {
namespace {

struct Case {
  std::vector<stacks::Frame> frames;
  Doing doing;
  std::string call;
};

TEST(Doing, FunctionsTellWhatARankDoes) {
  const std::string std_lib = "/usr/lib/python3.11/";
  const std::vector<Case> cases = {
      {in_backward(), Doing::backward, "backward"},
      {in_collective("all_reduce", 88), Doing::collective, "all_reduce"},
      {in_collective("get_rank", 88), Doing::own_code, ""},
      // A name that is part of a longer one is another function.
      {in_collective("all_to", 88), Doing::own_code, ""},
      {in_init(), Doing::rendezvous, "init_process_group"},
      {{{"new_group", kTorch + "distributed/distributed_c10d.py", 5000}},
       Doing::rendezvous,
       "new_group"},
      {in_loader(), Doing::data_loader, "_next_data"},
      {in_save(), Doing::saving, "save"},
      {in_own_code(31), Doing::own_code, ""},
      {{{"save_checkpoint", "/home/u/mine.py", 4}}, Doing::saving, "save_checkpoint"},
      // PyTorch 1.13.
      {{{"backward", kTorch + "autograd/__init__.py", 197}}, Doing::backward, "backward"},
      {{{"create_dynamic", "<frozen importlib._bootstrap_external>", 1294},
        {"<module>", "/home/u/job.py", 1}},
       Doing::importing,
       "create_dynamic"},
      {{{"compile_wrapper", kTorch + "_dynamo/eval_frame.py", 655}, {"train", "job.py", 4}},
       Doing::own_code,
       ""},
      {{{"_compile", kTorch + "_dynamo/convert_frame.py", 1000},
        {"compile_wrapper", kTorch + "_dynamo/eval_frame.py", 655}},
       Doing::compiling,
       "_compile"},
      {{{"_make_launchers", "/venv/lib/python3.12/site-packages/triton/compiler/compiler.py", 9}},
       Doing::compiling,
       "_make_launchers"},
      {{{"_shutdown", std_lib + "threading.py", 1500}}, Doing::ending, "_shutdown"},
      {{{"synchronize", kTorch + "cuda/__init__.py", 985}}, Doing::gpu_wait, "synchronize"},
      {{{"look", "/home/u/job.py", 1}, {"Pdb.interaction", std_lib + "pdb.py", 9}},
       Doing::debugger,
       ""},
      {{}, Doing::unknown, ""},
  };
  for (const Case& each : cases) {
    const Activity activity = what_doing(stack_of(each.frames));
    SCOPED_TRACE(each.frames.empty() ? "no frames" : each.frames[0].function);
    EXPECT_EQ(activity.doing, each.doing);
    EXPECT_EQ(activity.call, each.call);
  }
}

TEST(Doing, TrainingBelowAnImportIsNoImport) {
  std::vector<stacks::Frame> frames = in_own_code(31);
  for (int depth = 0; depth < 8; ++depth)
    frames.push_back({"main", "/home/u/job.py", depth});
  frames.push_back({"_call_with_frames_removed", "<frozen importlib._bootstrap>", 488});
  EXPECT_EQ(what_doing(stack_of(frames)).doing, Doing::own_code);
  EXPECT_EQ(what_doing(stack_of({in_own_code(31)[0], frames.back()})).doing, Doing::importing);
}

TEST(Doing, CollectivesOfACheckpointAreBoth) {
  auto frames = in_collective("all_gather_object", 12);
  frames.push_back({"save", kTorch + "distributed/checkpoint/state_dict_saver.py", 160});
  EXPECT_EQ(what_doing(stack_of(frames)), (Activity{Doing::collective, "all_gather_object", true}));
}

TEST(Doing, StateOfTheProcessGoesBeforeItsStack) {
  RankLook look{.process = asleep('S', "futex_do_wait"), .stack = stack_of(in_backward())};
  EXPECT_EQ(what_doing(look).doing, Doing::backward);
  look.process->reads_stdin = true;
  EXPECT_EQ(what_doing(look).doing, Doing::input);
  look.process->state = 'T';
  EXPECT_EQ(what_doing(look).doing, Doing::stopped);
  look.process->tracer = 4;
  EXPECT_EQ(what_doing(look).doing, Doing::debugger);
  look.process->state = 'Z';
  EXPECT_EQ(what_doing(look).doing, Doing::ended);
  look.process.reset();
  EXPECT_EQ(what_doing(look).doing, Doing::ended);
}

TEST(Doing, LoadersWorkOrWaitForRequests) {
  ChildLook child{.pid = 1, .stack = stack_of(in_loader_child(19))};
  EXPECT_TRUE(is_loader(child));
  EXPECT_FALSE(is_idle_loader(child));
  child.stack = stack_of(in_idle_loader_child());
  EXPECT_TRUE(is_loader(child));
  EXPECT_TRUE(is_idle_loader(child));
  child.stack = stack_of(in_own_code(3));
  EXPECT_FALSE(is_loader(child));
}

TEST(Place, IsTheInnermostLineOfTheUsersCode) {
  EXPECT_EQ(place_of(stack_of(in_backward())),
            (Place{"job.py:61", "train", "torch/autograd/graph.py"}));
  EXPECT_EQ(place_of(stack_of(in_own_code(31))), (Place{"job.py:31", "hang_here", ""}));
  EXPECT_EQ(place_of(stack_of(in_loader())).library, "selectors.py");
  EXPECT_EQ(place_of(stack_of({{"get", kTorch + "utils/data/dataloader.py", 7}, {"f", "a.py", 1}}))
                .library,
            "torch/.../data/dataloader.py");
  // Without code of the user's own, the innermost frame counts.
  EXPECT_EQ(place_of(stack_of({{"C.f", "/usr/lib/python3.11/a/b.py", 7}})), (Place{"b.py:7", "f"}));
  EXPECT_EQ(place_of({}), Place{});
}

TEST(Place, HostileNamesStayShortAndPrintable) {
  const Place place =
      place_of(stack_of({{"\x1b[2J<script>" + std::string(9000, 'x'), "/a/\x9b\n.py", -4}}));
  EXPECT_EQ(place.line, "\\x9b\\x0a.py:-4");
  EXPECT_TRUE(place.function.starts_with("\\x1b[2J<script>xx"));
  EXPECT_LT(place.function.size(), 100U);
}

TEST(Place, LibrariesAreToldFromTheUsersCode) {
  EXPECT_EQ(library_path("/v/lib/python3.12/site-packages/a/b.py"), "a/b.py");
  EXPECT_EQ(library_path("/home/u/.pyenv/versions/3.8.18/lib/python3.8/queue.py"), "queue.py");
  EXPECT_EQ(library_path("/opt/pytorch/torch/autograd/graph.py"), "torch/autograd/graph.py");
  EXPECT_EQ(library_path("<frozen runpy>"), "<frozen runpy>");
  // Of a name without end, only a part is searched.
  EXPECT_EQ(library_path(std::string(5000, '/') + "/site-packages/a/b.py"), "a/b.py");
  EXPECT_FALSE(library_path("/v/site-packages/" + std::string(5000, 'a')));
  EXPECT_FALSE(library_path("/v/site-packages/" + std::string(40, '/') + "b.py"));
  for (const char* own : {"/home/u/torch/train.py", "train.py", "<string>", "<stdin>", ""})
    EXPECT_FALSE(library_path(own)) << own;
}

TEST(Place, StacksAreEqualAlsoInOtherFoldersOfLibraries) {
  auto frames = in_backward();
  const auto key = stack_key(stack_of(frames));
  for (auto& frame : frames)
    if (const auto path = library_path(frame.file))
      frame.file = "/opt/conda/lib/python3.12/site-packages/" + std::string(*path);
  EXPECT_EQ(stack_key(stack_of(frames)), key);
  frames.back().line += 1;
  EXPECT_NE(stack_key(stack_of(frames)), key);
  EXPECT_EQ(stack_key({}), 0U);
}

TEST(Place, LinesOfABarrierThatPollsAreOneStack) {
  std::vector<stacks::Frame> frames = in_init();
  frames[0] = {"_store_based_barrier", kTorch + "distributed/distributed_c10d.py", 460};
  const auto key = stack_key(stack_of(frames));
  frames[0].line = 462;
  EXPECT_EQ(stack_key(stack_of(frames)), key);
  frames.insert(frames.begin(), {"Logger.info", "/usr/lib/python3.11/logging/__init__.py", 1489});
  EXPECT_EQ(stack_key(stack_of(frames)), key);
  frames.back().line += 1;
  EXPECT_NE(stack_key(stack_of(frames)), key) << "another barrier";
}

}  // namespace
}  // namespace lockstep::looks
