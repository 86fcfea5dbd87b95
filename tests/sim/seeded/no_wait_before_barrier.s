; fault: unwaited_write at 10+13
; launch: 1 | 128 | zeros(64), zeros(128)
; a barrier does not wait for what its wave has just written
	s_load_dwordx4 s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
	v_and_b32_e32 v2, 0xfc, v1
	v_cmp_gt_u32_e32 vcc, 64, v0
	s_waitcnt lgkmcnt(0)
	s_and_saveexec_b64 s[2:3], vcc
	ds_write_b32 v2, v1
	s_mov_b64 exec, s[2:3]
	s_barrier
	ds_read_b32 v3, v2
	s_waitcnt lgkmcnt(0)
	global_store_dword v1, v3, s[6:7]
