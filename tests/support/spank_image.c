/* A plugin for Slurm that behaves as pyxis documents itself, with a folder for the image:
 *
 *   srun --container-image=FOLDER    runs the tasks in the image
 *   sbatch --container-image=FOLDER  runs the batch script itself there, also by its #SBATCH line
 *   PYXIS_CONTAINER_IMAGE            stands for the option in both
 *
 * The image has /proc, /dev, /sys and /tmp of the node, and nothing else: no srun, and no file of
 * the job that
 * --container-mounts does not name. Source: pyxis' README and enroot's mounts.d. */
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

SPANK_PLUGIN(image, 1)

enum { IMAGE, MOUNTS, WORKDIR, NO_HOME, OPTIONS };
static const char* given[OPTIONS];

static int take(int option, const char* value, int remote) {
  (void)remote;
  given[option] = strdup(value != NULL ? value : "");
  return 0;
}

static struct spank_option options[] = {
    {"container-image", "FOLDER", "the root of the tasks", 1, IMAGE, take},
    {"container-mounts", "SRC:DST[:ro],...", "folders in the image", 1, MOUNTS, take},
    {"container-workdir", "FOLDER", "where the tasks begin", 1, WORKDIR, take},
    {"no-container-mount-home", NULL, "is always so", 0, NO_HOME, take},
};

int slurm_spank_init(spank_t spank, int count, char** words) {
  (void)count, (void)words;
  for (int each = 0; each < OPTIONS; ++each)
    if (spank_option_register(spank, &options[each]) != ESPANK_SUCCESS) return -1;
  return 0;
}

/* Makes the folder and those above it. */
static void make(char* folder) {
  for (char* at = strchr(folder + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
    *at = '\0';
    (void)mkdir(folder, 0755);
    *at = '/';
  }
  (void)mkdir(folder, 0755);
}

static int bind_at(const char* from, const char* to, int read_only) {
  char place[4096];
  (void)snprintf(place, sizeof place, "%s%s", given[IMAGE], to);
  make(place);
  if (mount(from, place, NULL, MS_BIND | MS_REC, NULL) != 0) return -1;
  return read_only ? mount(NULL, place, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) : 0;
}

static int bind_all(char* list) {
  for (char* one = strtok(list, ","); one != NULL; one = strtok(NULL, ",")) {
    char* to = strchr(one, ':');
    char* flags = to != NULL ? strchr(to + 1, ':') : NULL;
    if (to != NULL) *to++ = '\0';
    if (flags != NULL) *flags++ = '\0';
    if (bind_at(one, to != NULL ? to : one, flags != NULL && strcmp(flags, "ro") == 0) != 0)
      return -1;
  }
  return 0;
}

/* Runs in the process that becomes the task, or the batch script. */
int slurm_spank_task_init(spank_t spank, int count, char** words) {
  static char variable[4096];
  (void)count, (void)words;
  if (given[IMAGE] == NULL &&
      spank_getenv(spank, "PYXIS_CONTAINER_IMAGE", variable, sizeof variable) == ESPANK_SUCCESS)
    given[IMAGE] = variable;
  if (given[IMAGE] == NULL) return 0;
  const int failed =
      unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0 ||
      bind_at("/proc", "/proc", 0) != 0 || bind_at("/dev", "/dev", 0) != 0 ||
      bind_at("/sys", "/sys", 0) != 0 || bind_at("/tmp", "/tmp", 0) != 0 ||
      (given[MOUNTS] != NULL && bind_all(strdup(given[MOUNTS])) != 0) ||
      chroot(given[IMAGE]) != 0 || chdir(given[WORKDIR] != NULL ? given[WORKDIR] : "/") != 0;
  if (failed) slurm_error("image: cannot run a task in %s: %m", given[IMAGE]);
  return failed ? -1 : 0;
}
