/* Stack switch for warps that wait: callee-saved registers only, return by jump.
 *
 * void va_switch(void **save_sp, void *next_sp) */
#define VA_WARP_SP 160 /* offset of Warp::sp; worker.h asserts it */
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

/* Arrive at a barrier and go on in whichever warp runs next: one indirect jump, which the machine
 * learns to foresee; returns of a stack that was switched are always foreseen wrong.
 *
 * void va_h_bar_wait(va_warp *w, uint32_t site, uint32_t id, uint32_t threads, uint32_t votes,
 *                    uint32_t lanes) */
    .globl va_h_bar_wait
    .hidden va_h_bar_wait
    .type va_h_bar_wait, @function
    .p2align 4
va_h_bar_wait:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, VA_WARP_SP(%rdi)
    subq $8, %rsp
    call va_next_after_barrier
    movq %rax, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    popq %rcx
    jmp *%rcx
    .size va_h_bar_wait, .-va_h_bar_wait

/* Call a function on another stack, which nobody else uses meanwhile.
 *
 * void va_call_on(void *stack, void (*call)(void *), void *argument) */
    .globl va_call_on
    .hidden va_call_on
    .type va_call_on, @function
    .p2align 4
va_call_on:
    pushq %rbp
    movq %rsp, %rbp
    movq %rdi, %rsp
    movq %rdx, %rdi
    call *%rsi
    movq %rbp, %rsp
    popq %rbp
    ret
    .size va_call_on, .-va_call_on
    .section .note.GNU-stack,"",@progbits
