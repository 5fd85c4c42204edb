/* Stack switch for warps that wait: callee-saved registers only, return by jump.
 *
 * void va_switch(void **save_sp, void *next_sp) */
#if !defined(__x86_64__)
#error "va100's native core is written for x86-64; other hosts are not supported yet"
#endif
    .text
    .globl va_switch
    .hidden va_switch
    .type va_switch, @function
    .p2align 4
va_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
    .size va_switch, .-va_switch
    .section .note.GNU-stack,"",@progbits
