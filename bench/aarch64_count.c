/* How many instructions does a program execute? A plugin of QEMU's user mode that says so on standard error at the end.
 *
 * What it uses of QEMU's interface is declared here, since distributions ship the emulator without its header.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

typedef uint64_t plugin_id;
struct qemu_plugin_tb;

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*callback)(plugin_id, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, void (*callback)(unsigned int, void *), int flags,
                                          void *data);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*callback)(plugin_id, void *), void *data);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

static uint64_t executed;

static void count(unsigned int processor, void *num_instructions)
{
    (void)processor;
    executed += (uintptr_t)num_instructions;
}

static void watch(plugin_id id, struct qemu_plugin_tb *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_cb(block, count, 0, (void *)qemu_plugin_tb_n_insns(block));
}

static void report(plugin_id id, void *data)
{
    (void)id;
    (void)data;
    fprintf(stderr, "instructions: %" PRIu64 "\n", executed);
}

EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, watch);
    qemu_plugin_register_atexit_cb(id, report, NULL);
    return 0;
}
